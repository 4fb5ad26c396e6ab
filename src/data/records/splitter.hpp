// Divides ranges of a Source into its records.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "core/base/base.hpp"
#include "data/records/buckets.hpp"
#include "data/records/check.hpp"
#include "data/records/output.hpp"
#include "data/records/source.hpp"

namespace pario::records {

/// Finds and reads records. For one thread.
class Splitter {
 public:
  using Visit = std::function<base::Status(const Heaped& record)>;
  virtual ~Splitter() = default;
  /// Calls `visit` for each record that begins in `where`, with its bytes if it is not longer than
  /// the limit.
  virtual base::Status split(base::Extent where, const Visit& visit) = 0;
};
/// The reaction of a shuffle to damaged records, and the skipped ones.
struct Damages {
  OnDamage reaction = OnDamage::fail;
  SkippedRecords* skipped = nullptr;  ///< null: the reaction is not skip
};

/// `chunk`: the longest `where`. A damaged record is an Error if the splitter reads it. To skip
/// damaged records, it reads all of them and does not visit damaged ones.
base::Result<std::unique_ptr<Splitter>> make_splitter(const Source& source, std::uint64_t chunk,
                                                      std::uint64_t inline_limit,
                                                      const Damages& damages);
/// Writes a record that a splitter did not read. EBADMSG: it is damaged. `reader`: of kSumPiece.
base::Status copy_record(const Source& source, const Heaped& record, const Damages& damages,
                         Reader& reader, OutputCursor& cursor, const Meter& meter);

}  // namespace pario::records
