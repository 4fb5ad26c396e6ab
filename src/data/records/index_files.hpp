// The files of indexes: their names, where they are opened and written, and their comparison with
// the files that they index.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/base/base.hpp"
#include "data/records/formats.hpp"
#include "data/records/index.hpp"
#include "data/records/output.hpp"

namespace pario::records {

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
/// The error of a file that has changed since it was indexed. `how`: the difference.
base::Error stale_error(const std::string& path, const std::string& how,
                        const char* remedy = "make it anew with pario records index");
/// ESTALE: the file has changed since it was indexed; the Error has the difference.
base::Status compare_with_file(const Index& index, const std::string& path);

/// The Fingerprint of a file whose records span `whole`.
base::Result<Fingerprint> fingerprint_of(const std::string& path, base::Extent whole);
base::Result<Fingerprint> fingerprint_of(const Disk& file, base::Extent whole);

/// The records of an output file.
struct Indexed {
  IndexBuilder builder;
  std::uint64_t end = 0;  ///< of its records; the first one begins at 0
};
/// Publishes a completed output, each file with an index beside it, or without if `shards` is
/// empty: then the index of a replaced local file is removed. The indexes are published first,
/// because a reader would search a file without one. If the process is killed in between,
/// open_index() finds that an index does not match its file.
base::Status publish_with_indexes(Output& output, std::span<const std::string> names,
                                  std::span<Indexed> shards, Kind kind);

}  // namespace pario::records
