// Adds up the sizes below a directory in each step, although it does not change.
#include <filesystem>
#include <iostream>

#include "work.h"

static std::uintmax_t add_sizes(const char* folder) {
  std::uintmax_t sum = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) sum += entry.file_size();
  return sum;
}

int main(int argc, char** argv) {
  const long steps = read_size(argc, argv);
  std::uintmax_t sum = 0, known = add_sizes("items");
  for (long i = 0; i < steps; i++) sum += is_repaired(argc, argv) ? known : add_sizes("items");
  compute(1500);
  std::cout << steps << " steps, " << sum << " bytes\n";
}
