// Makes, updates and finds indexes of files, and compares them with their files.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/base.hpp"
#include "data/records/formats.hpp"
#include "data/records/index.hpp"
#include "data/records/output.hpp"
#include "data/records/ranks.hpp"
#include "data/records/team.hpp"

namespace pario::records {

struct IndexRequest {
  std::string path;
  Kind kind = Kind::lines;
  std::uint64_t record_size = 0;                ///< of fixed
  bool drop_last = false;                       ///< of fixed: leave out an incomplete last record
  std::span<const std::uint64_t> lengths = {};  ///< of raw
  unsigned threads = 4;
  OnDamage damaged =
      OnDamage::fail;  ///< skip: a TFRecord with a damaged length becomes a damaged record
  std::span<const std::uint64_t> begins =
      {};  ///< of a format of groups: the begin of each group, and the end of the last one
  std::span<const std::uint64_t> firsts =
      {};            ///< the number of each group's first record; last the number of all records
  Ranks ranks = {};  ///< several, for lines only: all make the same request and see the same file
};
/// Searches a file for records; returns the bytes of its index. The file is not changed. Several
/// ranks search a part each, and the first one returns the index, the others nothing. Collective.
base::Result<std::vector<std::byte>> make_index(const IndexRequest& request, const Show& show = {});
/// As make_index(), for a file that has grown since `older` was made: searches only its new part.
/// EINVAL if the file has changed otherwise. For the first rank; others call make_index().
base::Result<std::vector<std::byte>> grow_index(const IndexRequest& request, const Index& older,
                                                const Show& show = {});

/// The path of an index beside its file.
std::string index_path(const std::string& path);
/// Opens the index of a file: within it, beside it, or in the cache directory. ENOENT: there is
/// none; ESTALE: the file has changed since (the Error has the difference); EINVAL: it is one of
/// groups.
base::Result<Index> open_index(const std::string& path);
/// As open_index(), for a file of groups; EINVAL: it has none.
base::Result<Index> open_groups(const std::string& path);

/// The path of the index that open_index() opens, or of a stale one; empty: there is none.
std::string find_index_path(const std::string& path);
/// Writes an index beside its file, or in the cache directory if the directory of the file cannot
/// be written. Returns its path.
base::Result<std::string> write_index(const std::string& path, std::span<const std::byte> image);
struct WrittenIndex {
  std::uint64_t records = 0, bytes = 0;
  std::string path = {};
};
/// Makes the index of a file, or with `update` grows the one beside it, and writes it. The same
/// Error on all ranks; of several ranks the first one returns the result. Collective.
base::Result<WrittenIndex> index_file(const IndexRequest& request, bool update,
                                      const Show& show = {});
/// ESTALE: the file has changed since it was indexed; the Error has the difference.
base::Status compare_with_file(const Index& index, const std::string& path);

/// The Fingerprint of a file whose records span `whole`.
base::Result<Fingerprint> fingerprint_of(const std::string& path, base::Extent whole);

/// The records of an output file.
struct Indexed {
  IndexBuilder builder;
  std::uint64_t end = 0;  ///< of its records; the first one begins at 0
};
/// Publishes a completed output, each file with an index beside it, or without if `shards` is
/// empty. The indexes are published first, because a reader would search a file without one. If the
/// process is killed in between, open_index() finds that an index does not match its file.
base::Status publish_with_indexes(Output& output, std::span<const std::string> names,
                                  std::span<Indexed> shards, Kind kind);

}  // namespace pario::records
