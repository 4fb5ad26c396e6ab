// A line at a time, each flushed by std::endl.
#include <fstream>

int main() {
  std::ofstream out("lines.txt");
  for (int i = 0; i < 20000; ++i) out << "value " << i << std::endl;
}
