#include "layers/chain/chain.hpp"

constinit thread_local int pario_in_vfork_child = 0;

namespace pario::chain {
namespace {

constinit std::atomic<RecordFinder> record_finder{nullptr};

}  // namespace

namespace detail {
constinit std::atomic<void*> entries[symbols::kSymbols] = {};
constinit std::atomic<void*> next_functions[kLayers][symbols::kSymbols] = {};
}  // namespace detail

void* build(Symbol symbol) {
  const trace::FirstCall measured;
  void* function = symbols::find_real_function(symbol);
  for (std::size_t layer = kLayers; layer-- > 0;) {
    detail::next_functions[layer][id_of(symbol)].store(function, std::memory_order_release);
    void* treatment = layers[layer].treatment_of(symbol);
    if (treatment != nullptr && layers[layer].is_active()) function = treatment;
  }
  detail::entries[id_of(symbol)].store(function, std::memory_order_release);
  return function;
}

void set_record_finder(RecordFinder finder) {
  record_finder.store(finder, std::memory_order_release);
}

trace::Record* find_record(trace::Layer layer, std::string_view path, int descriptor) {
  const RecordFinder finder = record_finder.load(std::memory_order_acquire);
  return finder == nullptr ? nullptr : finder(layer, path, descriptor);
}

}  // namespace pario::chain
