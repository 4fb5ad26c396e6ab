// The state that the parts of a buffered file share.
#pragma once

#include "core/hints/hints.hpp"
#include "layers/buffers/backing_file.hpp"
#include "layers/buffers/handle.hpp"
#include "layers/buffers/statistics.hpp"
#include "layers/buffers/window_cache.hpp"

namespace pario::buffers {

/// The shared state. The lock of the file guards it, except `backing`, which stays the same while
/// the file has buffers.
struct FileContext {
  BufferedFile* file = nullptr;
  BackingFile backing = {};
  hints::StreamHints hints = {};
  WindowCache windows = {};
  HandleList handles = {};
  Statistics statistics = {};
  CallClock clock = {};  ///< of the calls in `statistics`
};

}  // namespace pario::buffers
