// Locks of names in the cache of a node.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "directory.hpp"
#include "layers/node_cache/store.hpp"

namespace pario::node_cache::store {
namespace {

TEST(NodeCacheLock, AChildForkedMeanwhileKeepsNone) {
  const Directory scratch;
  ::setenv("PARIO_NODE_CACHE", scratch.path().c_str(), 1);
  ASSERT_EQ(directory(), scratch.path());
  pid_t child = -1;
  {
    const Lock lock("/tree/name");
    child = ::fork();
    if (child == 0) ::pause();
  }
  const pid_t other = ::fork();
  if (other == 0) {
    ::alarm(20);
    const Lock lock("/tree/name");
    ::_exit(0);
  }
  int status = -1;
  ::waitpid(other, &status, 0);
  EXPECT_EQ(status, 0);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace pario::node_cache::store
