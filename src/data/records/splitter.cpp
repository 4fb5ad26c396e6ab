#include "data/records/splitter.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace pario::records {
namespace {

constexpr std::uint64_t kOverlap =
    64 << 10;  // bytes after a chunk that are read with it, for its last record

/// Reads a record piece by piece, and passes the pieces to `take`. Returns an Error at the end if
/// it is damaged.
base::Status check_pieces(
    const Located& record, Reader& reader,
    const std::function<base::Status(std::span<const std::byte>)>& take = {}) {
  RecordCheck check(*record.index, record.number);
  for (std::uint64_t done = 0; done < record.where.length(); done += kSumPiece) {
    const std::uint64_t length = std::min(record.where.length() - done, kSumPiece);
    const auto piece = reader.read(base::Extent::at(record.where.begin + done, length));
    if (!piece.ok()) return piece.error();
    check.add(*piece);
    if (base::Status status = take ? take(*piece) : base::Status(); !status) return status;
  }
  const char* damage = check.damage();
  return damage == nullptr ? base::Status() : damage_error(*record.path, record.number, damage);
}

/// A chunk in memory, and a second window for records that are not in it.
class ChunkSplitter : public Splitter {
 public:
  ChunkSplitter(const Source& source, std::uint64_t limit, Reader chunk, Reader rest)
      : source_(source), limit_(limit), chunk_(std::move(chunk)), rest_(std::move(rest)) {}

 protected:
  base::Status load(base::Extent where) {
    held_ = {where.begin, std::min(source_.size(), where.end + kOverlap)};
    const auto bytes = chunk_.read(held_);
    if (!bytes.ok()) return bytes.error();
    data_ = bytes->data();
    return {};
  }

  base::Status give(base::Extent record, const Visit& visit) {
    Heaped heaped{.identity = record.begin,
                  .length = record.length(),
                  .inside = record.length() <= limit_,
                  .bytes = nullptr};
    if (!heaped.inside) return visit(heaped);
    if (record.end <= held_.end) {
      heaped.bytes = data_ + (record.begin - held_.begin);
      return visit(heaped);
    }
    const auto bytes = rest_.read(record);
    if (!bytes.ok()) return bytes.error();
    heaped.bytes = bytes->data();
    return visit(heaped);
  }

  const Source& source_;
  std::uint64_t limit_;
  Reader chunk_, rest_;
  base::Extent held_;
  const std::byte* data_ = nullptr;
};

class IndexedSplitter final : public ChunkSplitter {
 public:
  IndexedSplitter(const Source& source, std::uint64_t limit, Reader chunk, Reader rest,
                  const Damages& damages)
      : ChunkSplitter(source, limit, std::move(chunk), std::move(rest)), damages_(damages) {}
  base::Status split(base::Extent where, const Visit& visit) override {
    if (limit_ != 0)
      if (base::Status status = load(where); !status) return status;
    base::Status status;
    source_.visit(where, [&](const Located& record) {
      if (status)
        status =
            give(record.where, [&](const Heaped& heaped) { return check(record, heaped, visit); });
    });
    return status;
  }

 private:
  base::Status check(const Located& record, const Heaped& heaped, const Visit& visit) {
    base::Status status;
    if (damages_.reaction != OnDamage::ignore && has_checksums(*record.index))
      status = compare(record, heaped);
    if (status) return visit(heaped);
    if (damages_.reaction != OnDamage::skip || status.error().number != EBADMSG) return status;
    damages_.skipped->add(record.number, status.error());
    return {};
  }

  base::Status compare(const Located& record, const Heaped& heaped) {
    if (!heaped.inside)
      return damages_.reaction == OnDamage::skip ? check_pieces(record, rest_) : base::Status();
    const char* damage = find_damage(*record.index, record.number, {heaped.bytes, heaped.length});
    return damage == nullptr ? base::Status() : damage_error(*record.path, record.number, damage);
  }

  Damages damages_;
};

class LineSplitter final : public ChunkSplitter {
 public:
  using ChunkSplitter::ChunkSplitter;
  base::Status split(base::Extent where, const Visit& visit) override {
    if (where.empty()) return {};
    const std::uint64_t before =
        where.begin == 0 ? 0 : 1;  // the byte before shows whether a line begins here
    if (base::Status status = load({where.begin - before, where.end}); !status) return status;
    std::uint64_t begin = before == 0 ? 0 : line_end(where.begin - 1);
    while (begin < where.end) {
      std::uint64_t end = line_end(begin);
      if (end > held_.end) {
        const base::Result<std::uint64_t> far = find_far_end();
        if (!far.ok()) return far.error();
        end = *far;
      }
      if (base::Status status = give({begin, end}, visit); !status) return status;
      begin = end;
    }
    return {};
  }

 private:
  static const std::byte* line_feed(std::span<const std::byte> bytes) {
    return bytes.empty()
               ? nullptr
               : static_cast<const std::byte*>(std::memchr(bytes.data(), '\n', bytes.size()));
  }

  /// The place after the next line feed; the end of the bytes in memory if there is none.
  std::uint64_t line_end(std::uint64_t from) const {
    const std::byte* feed = line_feed({data_ + (from - held_.begin), held_.end - from});
    return feed == nullptr ? held_.end + 1
                           : held_.begin + static_cast<std::uint64_t>(feed - data_) + 1;
  }

  /// The end of a line that continues after the bytes in memory.
  base::Result<std::uint64_t> find_far_end() {
    for (std::uint64_t at = held_.end; at < source_.size();) {
      const auto bytes = rest_.read({at, std::min(source_.size(), at + rest_.most())});
      if (!bytes.ok()) return bytes.error();
      if (const std::byte* feed = line_feed(*bytes))
        return at + static_cast<std::uint64_t>(feed - bytes->data()) + 1;
      at += bytes->size();
    }
    return source_.size();
  }
};

}  // namespace

base::Status copy_record(const Source& source, const Heaped& record, const Damages& damages,
                         Reader& reader, OutputCursor& cursor, const Meter& meter) {
  const auto put = [&](std::span<const std::byte> piece) {
    return meter.is_stopped()
               ? base::Status(base::Error{.number = ECANCELED, .operation = "shuffle"})
               : cursor.put(piece);
  };
  if (source.kind() != Kind::lines && damages.reaction != OnDamage::ignore)
    return check_pieces(source.locate(record.identity), reader, put);
  for (std::uint64_t done = 0; done < record.length;) {
    const auto piece = reader.read(
        base::Extent::at(record.identity + done, std::min(record.length - done, reader.most())));
    if (!piece.ok()) return piece.error();
    if (base::Status status = put(*piece); !status) return status;
    done += piece->size();
  }
  return {};
}

base::Result<std::unique_ptr<Splitter>> make_splitter(const Source& source, std::uint64_t chunk,
                                                      std::uint64_t inline_limit,
                                                      const Damages& damages) {
  const bool reads = !source.is_indexed() || inline_limit != 0,
             searches = reads && source.kind() == Kind::lines;
  const std::uint64_t longest = reads ? std::max(inline_limit, kOverlap) : 0;
  base::Result<Reader> whole = Reader::make(source, reads ? chunk + kOverlap + 1 : 0);
  base::Result<Reader> rest = Reader::make(
      source, damages.reaction == OnDamage::skip ? std::max(longest, kSumPiece) : longest);
  if (!whole.ok()) return whole.error();
  if (!rest.ok()) return rest.error();
  if (searches)
    return std::unique_ptr<Splitter>(
        std::make_unique<LineSplitter>(source, inline_limit, std::move(*whole), std::move(*rest)));
  return std::unique_ptr<Splitter>(std::make_unique<IndexedSplitter>(
      source, inline_limit, std::move(*whole), std::move(*rest), damages));
}

}  // namespace pario::records
