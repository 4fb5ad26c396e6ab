// Fixtures of the tests of module trace: a scratch directory, a table of functions, calls.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "core/trace/trace.hpp"

namespace pario::trace {

inline constexpr FunctionInfo kFunctions[] = {{"open", "posix", Op::open},
                                              {"read", "posix", Op::read},
                                              {"write", "posix", Op::write},
                                              {"MPI_Send", "p2p"}};
enum : FunctionId { kOpenId, kReadId, kWriteId, kSendId };

inline Call call(FunctionId function, std::uint64_t offset, std::uint64_t asked,
                 std::int64_t result) {
  Call made{.function = function, .op = kFunctions[function].op, .start = ticks(), .end = 0};
  made.end = ticks();
  made.offset = offset;
  made.asked = asked;
  made.result = result;
  return made;
}

inline Call read_call(std::uint64_t offset, std::uint64_t size) {
  return call(kReadId, offset, size, static_cast<std::int64_t>(size));
}
inline Call write_call(std::uint64_t offset, std::uint64_t size) {
  return call(kWriteId, offset, size, static_cast<std::int64_t>(size));
}

inline Record* record_of(std::string_view path, Layer layer = Layer::posix) {
  return find_record(layer, path, nullptr, nullptr);
}

/// Creates an empty directory for the test.
class Scratch : public testing::Test {
 protected:
  Scratch() {
    std::string pattern = testing::TempDir() + "pario-XXXXXX";
    directory = mkdtemp(pattern.data());
  }
  ~Scratch() override { std::filesystem::remove_all(directory); }

  /// Runs `f` in a child, which it may end, and returns the child's wait status.
  template <class F>
  static int in_child(F&& f) {
    const pid_t child = fork();
    if (child == 0) {
      f();
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return status;
  }

  std::string directory;
};

/// Traces into the scratch directory.
class Tracing : public Scratch {
 protected:
  void begin(Config config = {}) {
    config.directory = directory.c_str();
    config.messages = false;
    start(config, kFunctions);
    ASSERT_TRUE(on());
  }
};

}  // namespace pario::trace
