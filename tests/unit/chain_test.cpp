// The chain of a function, with layers of this test instead of the real ones. Because a process
// builds the chain of a function only once, each test uses another function.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <set>
#include <string>

#include "core/symbols/symbols.hpp"
#include "layers/chain/chain.hpp"

namespace pario::chain {
namespace {

using Duplicate = int (*)(int);

std::string calls;         // the layers called, from the top
std::set<LayerId> active;  // the active layers
std::set<LayerId> without_treatment;

constexpr const char* kNames[] = {
#define PARIO_LAYER(module) #module " ",
#include "layers/chain/layers.def"
#undef PARIO_LAYER
};

template <LayerId layer, Symbol symbol>
int treat(int descriptor) {
  calls += kNames[static_cast<int>(layer)];
  return next<layer, symbol, int>(descriptor);
}

template <LayerId layer>
bool is_active() {
  return active.contains(layer);
}

template <LayerId layer>
void* treatment_of(Symbol symbol) {
  if (without_treatment.contains(layer)) return nullptr;
  switch (symbol) {
    case Symbol::dup:
      return reinterpret_cast<void*>(&treat<layer, Symbol::dup>);
    case Symbol::fsync:
      return reinterpret_cast<void*>(&treat<layer, Symbol::fsync>);
    case Symbol::fdatasync:
      return reinterpret_cast<void*>(&treat<layer, Symbol::fdatasync>);
    case Symbol::close:
      return reinterpret_cast<void*>(&treat<layer, Symbol::close>);
    default:
      return nullptr;
  }
}

class Chain : public testing::Test {
 protected:
  void SetUp() override {
    calls.clear();
    active = {LayerId::handles, LayerId::buffering, LayerId::striping, LayerId::staging};
    without_treatment.clear();
  }
};

TEST_F(Chain, passes_a_call_from_the_top_through_all_layers_to_the_real_function) {
  const int copy = entry<Duplicate, Symbol::dup>()(STDOUT_FILENO);
  EXPECT_EQ(calls, "handles buffering striping staging ");
  EXPECT_GT(copy, STDERR_FILENO);
  ::close(copy);
}

TEST_F(Chain, leaves_out_inactive_layers_and_layers_without_a_treatment) {
  active.erase(LayerId::handles);
  without_treatment.insert(LayerId::striping);
  EXPECT_EQ((entry<Duplicate, Symbol::fsync>()(-1)), -1);
  EXPECT_EQ(errno, EBADF);
  EXPECT_EQ(calls, "buffering staging ");
}

TEST_F(Chain, is_the_real_function_if_no_layer_is_active) {
  active.clear();
  EXPECT_EQ((entry<void*, Symbol::fdatasync>()), symbols::find_real_function(Symbol::fdatasync));
}

TEST_F(Chain, is_built_by_the_first_call_of_a_lower_layer) {
  EXPECT_EQ((next<LayerId::buffering, Symbol::close, int>(-1)), -1);
  EXPECT_EQ(calls, "striping staging ");
}

TEST_F(Chain, ends_with_ENOSYS_for_a_function_that_the_system_lacks) {
  EXPECT_EQ((entry<Duplicate, Symbol::sendfile_source>()(0)), -1);
  EXPECT_EQ(errno, ENOSYS);
}

TEST_F(Chain, finds_functions_that_remain_for_old_binaries) {
  EXPECT_NE(symbols::find_real_function(Symbol::__xstat),
            symbols::find_real_function(Symbol::sendfile_source));
}

trace::Record* find_row(trace::Layer, std::string_view path, int) {
  static trace::Record row;
  return path == "/traced" ? &row : nullptr;
}

TEST_F(Chain, finds_rows_of_files_once_the_tracer_has_set_a_function) {
  EXPECT_EQ(find_record(trace::Layer::posix, "/traced", 3), nullptr);
  set_record_finder(find_row);
  EXPECT_NE(find_record(trace::Layer::posix, "/traced", 3), nullptr);
  EXPECT_EQ(find_record(trace::Layer::posix, "/other", 3), nullptr);
  set_record_finder(nullptr);
}

}  // namespace

constinit const std::array<Layer, kLayers> layers = {{
#define PARIO_LAYER(module) {is_active<LayerId::module>, treatment_of<LayerId::module>},
#include "layers/chain/layers.def"
#undef PARIO_LAYER
}};

}  // namespace pario::chain
