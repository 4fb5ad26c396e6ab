// Calls from inlined functions and from a stream, for test_call_sites.py.
#include <fcntl.h>
#include <unistd.h>

#include <fstream>

namespace {

class Output {
 public:
  explicit Output(const char* path) : file_(open(path, O_CREAT | O_WRONLY, 0600)) {}
  [[gnu::always_inline]] void put(int value) {
    if (write(file_, &value, sizeof value) != sizeof value) _exit(9);  // mark: inlined
  }

 private:
  int file_;
};

[[gnu::noinline]] void save(const char* path) {
  Output output(path);
  for (int i = 0; i < 50; ++i) output.put(i);  // mark: caller
}

[[gnu::noinline]] void save_stream(const char* path) {
  std::ofstream stream(path);
  for (int i = 0; i < 40; ++i) stream << i << std::endl;  // mark: stream
}

}  // namespace

int main(int, char** words) {
  save(words[1]);
  save_stream(words[2]);
}
