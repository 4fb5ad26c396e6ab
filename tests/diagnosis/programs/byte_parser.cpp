// Parses a file of tokens with one unbuffered read per character.
#include <fcntl.h>
#include <unistd.h>

#include <iostream>
#include <vector>

#include "work.h"

class Source {
 public:
  Source(const char* path, size_t bytes) : _fd(open(path, O_RDONLY)), _block(bytes) {}
  ~Source() { close(_fd); }
  bool next(unsigned char& byte) {
    if (_at == _end) {
      const ssize_t n = read(_fd, _block.data(), _block.size());
      if (n <= 0) return false;
      _at = 0, _end = static_cast<size_t>(n);
    }
    byte = _block[_at++];
    return true;
  }

 private:
  int _fd;
  std::vector<unsigned char> _block;
  size_t _at = 0, _end = 0;
};

int main(int argc, char** argv) {
  const long limit = read_size(argc, argv);
  Source source("tokens.bin", is_repaired(argc, argv) ? 1 << 20 : 1);
  unsigned char byte = 0;
  long bytes = 0, tokens = 0;
  for (; bytes < limit && source.next(byte); bytes++) tokens += byte % 16 == 0;
  compute(1500);
  std::cout << bytes << " bytes, " << tokens << " tokens\n";
}
