// A layer of functions that stand before those of the C library, or before another layer's.
#pragma once

#include <atomic>

#include "preload/symbols.hpp"

namespace pario::preload {

/// What each function of a layer calls next. There before any constructor has run.
class StandIns {
 public:
  /// From now on `instead` is called in the place of `function`, which is returned where there is none.
  void* put(Symbol symbol, void* instead, void* function) {
    if (instead == nullptr) return function;
    functions_[id_of(symbol)].store(function, std::memory_order_release);
    return instead;
  }
  template <Symbol symbol, class Result, class... Args>
  Result next(Args... args) const {
    void* function = functions_[id_of(symbol)].load(std::memory_order_relaxed);
    return reinterpret_cast<Result (*)(Args...)>(function)(args...);
  }

 private:
  std::atomic<void*> functions_[kSymbols] = {};
};

}  // namespace pario::preload
