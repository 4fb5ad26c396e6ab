// The cache directory of the user, for indexes of files that have none beside them
// (docs/records.md, Indexes of read-only data).
#pragma once

#include <optional>
#include <span>
#include <string>

#include "core/base/base.hpp"
#include "data/records/indexing.hpp"

namespace pario::records {

/// PARIO_CACHE, else the directory pario of XDG_CACHE_HOME or ~/.cache, and in it "indexes"; empty
/// if none of these variables is set.
std::string cache_directory();

/// The path of the cached index of a file in its present state. `kind`: the format of the search;
/// none: the index made by `pario records index`, for readers that name no format.
base::Result<std::string> cached_index_path(const std::string& path, std::optional<Kind> kind);

/// Opens a cached index. ENOENT: there is no valid one for the file's present state. Any number of
/// processes may call it.
base::Result<Index> open_cached_index(const std::string& path, std::optional<Kind> kind);

/// Publishes an index in place of older ones of the same file; returns its path. Removes the least
/// recently used entries if all together exceed PARIO_CACHE_SIZE.
base::Result<std::string> write_cached_index(const std::string& path, std::optional<Kind> kind,
                                             std::span<const std::byte> image);

struct FoundIndex {
  Index index;
  base::Status kept;  ///< an Error: it could not be stored in the cache
};
/// The index in the cache, or a new one, which is stored there. Of concurrent processes one
/// searches the file and the others wait for it.
base::Result<FoundIndex> find_index(const IndexRequest& request, const Show& show);

}  // namespace pario::records
