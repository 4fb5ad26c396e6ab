// iostreams on files. Prints nothing; writes "out.txt" (text) and "out.bin" (binary), reads them
// back.
#include <fstream>
#include <string>
#include <vector>

int main() {
  {
    std::ofstream text("out.txt");
    for (int i = 0; i < 1000; ++i) text << i << ' ' << i * 0.5 << '\n';
    std::ofstream binary("out.bin", std::ios::binary);
    const std::vector<double> data(100000, 1.5);
    binary.write(reinterpret_cast<const char*>(data.data()), 800000);
    binary.put('x');
    for (int i = 0; i < 100; ++i) binary << std::flush << 'y';
  }
  std::ifstream text("out.txt");
  std::string line;
  int lines = 0;
  while (std::getline(text, line)) ++lines;
  std::fstream both("out.bin", std::ios::binary | std::ios::in | std::ios::out);
  both.seekp(10);
  both.write("0123456789", 10);
  return lines == 1000 && both.good() ? 0 : 1;
}
