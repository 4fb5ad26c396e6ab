// Threads that flush their own journal to the disk after each entry.
#include <fcntl.h>
#include <unistd.h>

#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "work.h"

static void keep_journal(int number, long entries, bool every) {
  const std::string path = "journal." + std::to_string(number), entry(500, 'j');
  const int fd = open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644);
  std::string pending;
  for (long i = 0; i < entries; i++) {
    pending += entry;
    if (!every && i + 1 < entries) continue;
    if (write(fd, pending.data(), pending.size()) < 0) std::perror(path.c_str());
    fsync(fd);
    pending.clear();
  }
  close(fd);
}

int main(int argc, char** argv) {
  const long entries = read_size(argc, argv);
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; t++)
    threads.emplace_back(keep_journal, t, entries, !is_repaired(argc, argv));
  for (auto& thread : threads) thread.join();
  compute(1500);
  std::cout << entries << " entries in each of 2 journals\n";
}
