// Reads a matrix of text with a stream.
#include <fstream>
#include <iostream>
#include <vector>

#include "work.h"

int main(int argc, char** argv) {
  std::vector<double> matrix(static_cast<size_t>(read_size(argc, argv)));
  if (is_repaired(argc, argv)) {
    std::ifstream in("matrix.bin", std::ios::binary);
    in.read(reinterpret_cast<char*>(matrix.data()),
            static_cast<std::streamsize>(matrix.size() * sizeof(double)));
  } else {
    std::ifstream in("matrix.txt");
    for (double& value : matrix) in >> value;
  }
  double sum = 0;
  for (const double value : matrix) sum += value;
  compute(1500);
  std::cout << matrix.size() << " values, sum " << sum << "\n";
}
