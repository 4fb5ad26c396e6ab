// Threads that read the configuration again for each task.
#include <atomic>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "work.h"

static std::string read_configuration() {
  std::ifstream in("settings.txt");
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

int main(int argc, char** argv) {
  const long tasks = read_size(argc, argv);
  const std::string kept = read_configuration();
  std::atomic<unsigned long> sum = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; t++)
    threads.emplace_back([&] {
      for (long i = 0; i < tasks; i++)
        sum += is_repaired(argc, argv) ? kept.size() : read_configuration().size();
    });
  for (auto& thread : threads) thread.join();
  compute(1500);
  std::cout << tasks << " tasks of 2 threads, " << sum << " bytes\n";
}
