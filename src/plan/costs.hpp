// What a request costs beside its bytes, as bytes that could be moved in the same time. Ratios are all that decisions need.
#pragma once

#include "layout/layout.hpp"

namespace pario::plan {

/// The kernel of one node has the file to itself.
inline bool on_one_node(layout::Kind kind) { return kind == layout::Kind::local || kind == layout::Kind::tmpfs; }

/// Measured on ext4: 4 KiB writes run at 0.9 GB/s where large ones run at 5. A server adds a round trip, or a page that it must look at.
inline std::uint64_t request_bytes(layout::Kind kind) { return on_one_node(kind) ? 16 << 10 : 64 << 10; }

}  // namespace pario::plan
