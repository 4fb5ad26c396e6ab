// Writes pixels through an ofstream without a buffer.
#include <fstream>
#include <iostream>

#include "work.h"

int main(int argc, char** argv) {
  const long pixels = read_size(argc, argv);
  std::ofstream out;
  if (!is_repaired(argc, argv)) out.rdbuf()->pubsetbuf(nullptr, 0);
  out.open("image.raw", std::ios::binary);
  const char pixel[4] = {10, 20, 30, 0};
  for (long i = 0; i < pixels; i++) out.write(pixel, sizeof pixel);
  out.close();
  compute(1500);
  std::cout << pixels << " pixels\n";
}
