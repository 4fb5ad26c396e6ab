// Appends each result through a stream object of its own.
#include <fstream>
#include <iostream>

#include "work.h"

static void append(long number) {
  std::ofstream out("results.txt", std::ios::app);
  out << "result " << number << " accepted\n";
}

int main(int argc, char** argv) {
  const long results = read_size(argc, argv);
  if (is_repaired(argc, argv)) {
    std::ofstream out("results.txt", std::ios::app);
    for (long i = 0; i < results; i++) out << "result " << i << " accepted\n";
  } else {
    for (long i = 0; i < results; i++) append(i);
  }
  compute(1500);
  std::cout << results << " results\n";
}
