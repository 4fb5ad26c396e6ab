// Saves a matrix as text with all digits.
#include <fstream>
#include <iomanip>
#include <iostream>
#include <vector>

#include "work.h"

int main(int argc, char** argv) {
  std::vector<double> matrix(static_cast<size_t>(read_size(argc, argv)));
  for (size_t i = 0; i < matrix.size(); i++) matrix[i] = 1.0 / static_cast<double>(i + 3);
  if (is_repaired(argc, argv)) {
    std::ofstream out("matrix.bin", std::ios::binary);
    out.write(reinterpret_cast<const char*>(matrix.data()),
              static_cast<std::streamsize>(matrix.size() * sizeof(double)));
  } else {
    std::ofstream out("matrix.txt");
    out << std::setprecision(17);
    for (const double value : matrix) out << value << '\n';
  }
  compute(1500);
  std::cout << matrix.size() << " values\n";
}
