// endl FILE LINES: a line at a time, each flushed by std::endl.
#include <cstdlib>
#include <fstream>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  std::ofstream out(argv[1]);
  for (int i = 0, lines = std::atoi(argv[2]); i < lines; ++i)
    out << "line " << i << ' ' << 0.5 * i << std::endl;
  return out ? 0 : 1;
}
