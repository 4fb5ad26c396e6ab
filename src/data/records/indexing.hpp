// Makes and updates indexes of files.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/base.hpp"
#include "data/records/formats.hpp"
#include "data/records/index.hpp"
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

struct WrittenIndex {
  std::uint64_t records = 0, bytes = 0;
  std::string path = {};
};
/// Makes the index of a file, or with `update` grows the one beside it, and writes it. The same
/// Error on all ranks; of several ranks the first one returns the result. Collective.
base::Result<WrittenIndex> index_file(const IndexRequest& request, bool update,
                                      const Show& show = {});
}  // namespace pario::records
