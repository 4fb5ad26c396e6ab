// Looks for a stop file before every iteration of a loop.
#include <filesystem>
#include <iostream>

#include "work.h"

int main(int argc, char** argv) {
  const long iterations = read_size(argc, argv);
  const long every = is_repaired(argc, argv) ? iterations / 20 + 1 : 1;
  long done = 0;
  for (long i = 0; i < iterations; i++) {
    if (i % every == 0 && std::filesystem::exists("stop")) break;
    done++;
  }
  compute(1500);
  std::cout << done << " iterations\n";
}
