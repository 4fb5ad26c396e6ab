// Threads that share a log and flush it after each line.
#include <cstdio>
#include <thread>
#include <vector>

#include "work.h"

int main(int argc, char** argv) {
  const long lines = read_size(argc, argv);
  const bool repaired = is_repaired(argc, argv);
  std::FILE* log = std::fopen("threads.log", "w");
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 2; thread++)
    threads.emplace_back([&] {
      for (long line = 0; line < lines; line++) {
        std::fputs(
            "a step of the program has ended: no error, no warning, and no file is missing\n", log);
        if (!repaired) std::fflush(log);
      }
    });
  for (auto& thread : threads) thread.join();
  std::fclose(log);
  compute(1500);
  std::printf("%ld lines of each thread\n", lines);
  return 0;
}
