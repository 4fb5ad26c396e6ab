// Indices of files: made, brought up to date, found and held against the file.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/base.hpp"
#include "data/records/formats.hpp"
#include "data/records/index.hpp"
#include "data/records/output.hpp"
#include "data/records/team.hpp"

namespace pario::records {

struct IndexRequest {
  std::string path;
  Kind kind = Kind::lines;
  std::uint64_t record_size = 0;                ///< of fixed
  std::span<const std::uint64_t> lengths = {};  ///< of raw
  unsigned threads = 4;
  OnDamage damaged =
      OnDamage::fail;  ///< skip: a record of tfrecord with a damaged length becomes a damaged one
  std::span<const std::uint64_t> begins =
      {};  ///< of a format of groups: where each begins, and the last one ends
  std::span<const std::uint64_t> firsts =
      {};  ///< the number of the first record of each, and of all
};
/// Searches the file for records; the bytes of the index. The file is not changed.
base::Result<std::vector<std::byte>> make_index(const IndexRequest& request, const Show& show = {});
/// The same for a file that has grown since `older` was made: only its new part is searched. EINVAL
/// if it has changed otherwise.
base::Result<std::vector<std::byte>> grow_index(const IndexRequest& request, const Index& older,
                                                const Show& show = {});

/// The path of an index beside its file.
std::string index_path(const std::string& path);
/// The index of a file: its own, the one beside it, or one in the cache directory. ENOENT: there is
/// none; ESTALE: the file is no longer what was indexed, and how; EINVAL: it is one of groups.
base::Result<Index> open_index(const std::string& path);
/// The same of a file of groups; EINVAL: it is none.
base::Result<Index> open_groups(const std::string& path);

/// The path of the index that open_index() opens, or would if it were not stale; empty: there is
/// none.
std::string find_index_path(const std::string& path);
/// Writes an index beside its file, or in the cache directory if the directory of the file cannot
/// be written. Returns its path.
base::Result<std::string> write_index(const std::string& path, std::span<const std::byte> image);
/// ESTALE: the file is not as it was when it was indexed; the Error tells the difference.
base::Status compare_with_file(const Index& index, const std::string& path);

/// Of a file whose records span `whole`.
base::Result<Fingerprint> fingerprint_of(const std::string& path, base::Extent whole);

/// The records of a file that is written.
struct Indexed {
  IndexBuilder builder;
  std::uint64_t end = 0;  ///< of its records, of which the first is at its beginning
};
/// An output that is settled gets its names, each file with an index beside it, or with none where
/// `shards` is empty. The indices come first: a file without one would be taken for one that is to
/// be indexed. Killed in between, an index is not of the file that is there, which open_index()
/// notices.
base::Status give_names_with_indices(Output& output, std::span<const std::string> names,
                                     std::span<Indexed> shards, Kind kind);

}  // namespace pario::records
