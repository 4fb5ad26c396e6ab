// Threads that each write their particles one by one into a file of their own.
#include <fcntl.h>
#include <unistd.h>

#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "work.h"

struct Particle {
  double position[3];
};

static void write_particles(int number, const std::vector<Particle>& particles, size_t each) {
  const std::string path = "particles." + std::to_string(number);
  const int fd = open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644);
  for (size_t done = 0; done < particles.size(); done += each) {
    const size_t n = std::min(each, particles.size() - done);
    if (write(fd, particles.data() + done, n * sizeof(Particle)) < 0) std::perror(path.c_str());
  }
  close(fd);
}

int main(int argc, char** argv) {
  const std::vector<Particle> particles(static_cast<size_t>(read_size(argc, argv)),
                                        Particle{{1, 2, 3}});
  const size_t each = is_repaired(argc, argv) ? 65536 : 1;
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; t++) threads.emplace_back([&, t] { write_particles(t, particles, each); });
  for (auto& thread : threads) thread.join();
  compute(1500);
  std::cout << particles.size() << " particles in each of 2 files\n";
}
