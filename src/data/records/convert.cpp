#include "data/records/convert.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

#include "core/file/publication.hpp"
#include "data/records/arranged.hpp"
#include "data/records/checksum.hpp"
#include "data/records/dataset.hpp"
#include "data/records/output.hpp"
#include "data/records/packed.hpp"

namespace pario::records {
namespace {

constexpr std::uint64_t kWriting = 1 << 20;
constexpr std::uint64_t kSkipped = ~std::uint64_t{0};  // the length of a record in places
constexpr std::size_t kDigits = 9;                     // least digits of the number of a record

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

/// The part of a shard that a rank writes.
struct Part {
  std::uint64_t begin = 0, bytes = 0;
};

/// A record of the inputs, counted through all of them.
struct Position {
  std::uint64_t record = 0;
  std::size_t input = 0;  ///< its input, or one before that
};

class Converter {
 public:
  Converter(const ConvertRequest& request, std::vector<Dataset> inputs, const Show& show)
      : request_(request), ranks_(request.ranks), inputs_(std::move(inputs)), meter_(show) {
    for (const Dataset& input : inputs_) {
      firsts_.push_back(records_);
      records_ += input.count();
      bytes_ += input.index().whole().length();
    }
    const base::Extent share = ranks_.share_of(records_);
    first_ = share.begin;
    behind_ = share.end;
    parts_.resize(request.outputs.size());
    meter_.expect(ranks_.alone() ? bytes_ : 2 * bytes_ / ranks_.count);
  }

  /// Converts. Each step has the same outcome on all ranks.
  base::Result<Converted> run() {
    using Step = base::Status (Converter::*)();
    for (const Step step : {&Converter::make_output, &Converter::measure, &Converter::write,
                            &Converter::share_places, &Converter::finish})
      if (base::Status status = ranks_.together((this->*step)()); !status) return status.error();
    return Converted{all_written_, all_skipped_, skipped_.first()};
  }

 private:
  /// The first record of a shard.
  std::uint64_t first_of(std::uint64_t shard) const {
    return static_cast<std::uint64_t>(static_cast<unsigned __int128>(records_) * shard /
                                      parts_.size());
  }
  bool keeps_places() const { return keeps_index(request_.kind); }

  base::Status make_output() {
    const auto numbers = ranks_.exchange({}, {file::random_part_number()});
    if (!numbers.ok()) return numbers.error();
    auto output = Output::make_together(ranks_, request_.outputs, bytes_, Caching::page_cache,
                                        numbers->front()[0]);
    if (!output.ok()) return output.error();
    output_ = std::move(*output);
    return {};
  }

  /// Computes the places of this rank's records: those of other ranks precede them.
  base::Status measure() {
    if (ranks_.alone()) return {};
    base::Status status = work(nullptr);
    std::vector<std::uint64_t> mine{written_, damaged_};
    for (const Part& part : parts_) mine.push_back(part.bytes);
    const auto all = ranks_.exchange(status, mine);
    if (!all.ok()) return all.error();
    sizes_.resize(parts_.size());
    for (unsigned rank = 0; rank < ranks_.count; ++rank) {
      const std::vector<std::uint64_t>& each = (*all)[rank];
      if (rank == ranks_.rank) written_before_ = all_written_;
      all_written_ += each[0];
      all_skipped_ += each[1];
      for (std::size_t shard = 0; shard < parts_.size(); ++shard) {
        if (rank == ranks_.rank) parts_[shard].begin = sizes_[shard];
        sizes_[shard] += each[2 + shard];
      }
    }
    return {};
  }

  base::Status write() {
    base::Result<OutputCursor> cursor = OutputCursor::make(*output_, kWriting);
    if (!cursor.ok()) return cursor.error();
    const std::vector<Part> measured = parts_;
    base::Status status = work(&*cursor);
    if (!status) return status;
    if (ranks_.alone()) {
      all_written_ = written_;
      all_skipped_ = damaged_;
      return {};
    }
    for (std::size_t shard = 0; shard < parts_.size(); ++shard)
      if (parts_[shard].bytes != measured[shard].bytes)
        return base::Error{.number = ESTALE,
                           .operation = "convert",
                           .path = request_.inputs[0],
                           .detail = "the inputs were changed while they were converted"};
    return output_->flush();
  }

  /// Converts this rank's records; null: only computes their places.
  base::Status work(OutputCursor* cursor) {
    cursor_ = cursor;
    written_ = damaged_ = 0;
    return run_team(1, meter_, [&](unsigned) { return take_all(); });
  }

  base::Status take_all() {
    Position at{.record = first_};
    for (std::uint32_t shard = 0; shard < parts_.size(); ++shard) {
      Part& part = parts_[shard];
      offset_ = part.begin;
      base::Status status = cursor_ ? cursor_->seek(shard, offset_) : base::Status();
      if (status) status = take_until(std::min(behind_, first_of(shard + 1)), at);
      if (status && cursor_) status = cursor_->flush();
      if (status && ranks_.alone()) status = close_shard(shard, offset_, *cursor_);
      if (!status) return status;
      part.bytes = offset_ - part.begin;
    }
    return {};
  }

  /// Converts the records from a position on, up to the record `end`.
  base::Status take_until(std::uint64_t end, Position& at) {
    for (; at.record < end && !meter_.is_stopped(); ++at.record) {
      find_input(at);
      base::Status status = take(inputs_[at.input], at.record - firsts_[at.input]);
      if (!status) return status;
    }
    return {};
  }

  /// Moves on to the input of the position's record.
  void find_input(Position& at) const {
    while (at.record - firsts_[at.input] >= inputs_[at.input].count()) ++at.input;
  }

  /// Sends the lengths and checksums of the records to all ranks, for the first one's index.
  base::Status share_places() {
    if (ranks_.alone() || !keeps_places()) return {};
    auto all = ranks_.exchange({}, places_);
    if (!all.ok()) return all.error();
    places_.clear();
    if (!ranks_.first()) return {};
    for (const auto& each : *all) places_.insert(places_.end(), each.begin(), each.end());
    return {};
  }

  base::Status finish() {
    if (!ranks_.first()) return {};
    if (!ranks_.alone())
      if (base::Status status = close_shards(); !status) return status;
    base::Status status = output_->complete(whole_, format_of(request_.kind).trailer);
    return status ? publish_with_indexes(*output_, request_.outputs, indices_, Kind::raw) : status;
  }

  /// Completes the shards of all ranks, with the indexes of all their records.
  base::Status close_shards() {
    base::Result<OutputCursor> cursor = OutputCursor::make(*output_, kWriting);
    if (!cursor.ok()) return cursor.error();
    std::size_t place = 0;
    Position at;
    for (std::uint32_t shard = 0; shard < parts_.size(); ++shard) {
      offset_ = 0;
      for (; keeps_places() && at.record < first_of(shard + 1); ++at.record, place += 2) {
        find_input(at);
        if (places_[place] == kSkipped) continue;
        add_to_index(inputs_[at.input], at.record - firsts_[at.input],
                     static_cast<std::uint32_t>(places_[place + 1]));
        offset_ += places_[place];
      }
      if (base::Status status = close_shard(shard, sizes_[shard], *cursor); !status) return status;
    }
    return {};
  }

  /// Writes the end of a shard after the `size` bytes of its records.
  base::Status close_shard(std::uint32_t shard, std::uint64_t size, OutputCursor& cursor) {
    output_->begins(shard, whole_);
    whole_ += size;
    if (request_.kind == Kind::packed) {
      const auto tail = packed_tail(size, index_.finish(Kind::packed, size, {.size = size}));
      base::Status status = cursor.seek(shard, size);
      if (status) status = cursor.put(tail);
      if (status) status = cursor.flush();
      if (!status) return status;
      whole_ += tail.size();
    } else if (request_.kind == Kind::raw) {
      indices_.push_back({std::move(index_), size});
    }
    index_ = {};
    return {};
  }

  base::Status take(const Dataset& input, std::uint64_t record) {
    const std::uint64_t length = input.index().span(record).length(), begin = offset_;
    memory_.resize(length);
    const base::Result<base::Extent> data = input.read(record, memory_);
    if (!data.ok()) return skip(record, data.error());
    const bool as_it_is = input.format().kind == request_.kind && request_.kind != Kind::lines;
    const auto payload =
        as_it_is ? std::span<const std::byte>(memory_)
                 : std::span<const std::byte>(memory_).subspan(data->begin, data->length());
    ++written_;
    meter_.add(length);
    base::Status status = put(as_it_is ? Kind::raw : request_.kind, payload, input, record);
    if (status && cursor_ && keeps_places()) {
      const std::uint32_t sum = request_.kind == Kind::packed ? sum_of(payload) : 0;
      const std::uint64_t end = std::exchange(offset_, begin);
      if (ranks_.alone())
        add_to_index(input, record, sum);
      else
        places_.insert(places_.end(), {end - begin, sum});
      offset_ = end;
    }
    return status;
  }

  base::Status skip(std::uint64_t record, const base::Error& error) {
    if (request_.damaged != OnDamage::skip) return error;
    ++damaged_;
    if (!cursor_) return {};
    skipped_.add(record, error);
    if (!ranks_.alone() && keeps_places()) places_.insert(places_.end(), {kSkipped, 0});
    return {};
  }

  /// Adds a record that begins at the offset.
  void add_to_index(const Dataset& input, std::uint64_t record, std::uint32_t sum) {
    index_.begin(offset_);
    if (request_.kind != Kind::packed) return;
    const Index& from = input.index();
    index_.name(from.name(record), from.mode(record), from.modification_time(record));
    index_.sum(sum);
  }

  static std::uint32_t sum_of(std::span<const std::byte> payload) {
    std::uint64_t sum = 0;
    for (std::uint64_t done = 0; done < payload.size() || done == 0; done += kSumPiece)
      sum = add_to_sum(
          sum, payload.subspan(done, std::min<std::uint64_t>(kSumPiece, payload.size() - done)));
    return static_cast<std::uint32_t>(sum);
  }

  base::Status put(Kind kind, std::span<const std::byte> payload, const Dataset& input,
                   std::uint64_t record) {
    if (kind == Kind::tfrecord) return put_tfrecord(payload);
    if (kind == Kind::tar) return put_member(payload, input, record);
    if (kind != Kind::lines) return put(payload);
    // Lines keep their own ends.
    const bool is_line = input.format().kind == Kind::lines && memory_.size() > payload.size();
    const bool has_feed = std::ranges::find(payload, std::byte{'\n'}) != payload.end();
    const bool loses_return = !is_line && !payload.empty() && payload.back() == std::byte{'\r'};
    if (has_feed || loses_return)
      return base::Error{
          .number = EINVAL,
          .operation = "convert",
          .path = input.path(),
          .detail = "record " + std::to_string(record) +
                    (has_feed ? " holds a line feed" : " ends with a carriage return") +
                    " and cannot be a line"};
    base::Status status = put(payload);
    if (!status) return status;
    if (is_line) return put(std::span<const std::byte>(memory_).subspan(payload.size()));
    const base::Result<std::string_view> end = find_line_end(input, record);
    return end.ok() ? put(std::as_bytes(std::span(*end))) : end.error();
  }

  /// The line end of a record without one: that of the first line, if the record is the last one of
  /// a text.
  static base::Result<std::string_view> find_line_end(const Dataset& input, std::uint64_t record) {
    if (input.format().kind != Kind::lines || record == 0) return std::string_view("\n");
    std::vector<std::byte> first(input.index().span(0).length());
    const base::Result<base::Extent> data = input.read(0, first);
    if (!data.ok()) return data.error();
    return std::string_view(first.size() - data->end == 2 ? "\r\n" : "\n");
  }

  base::Status put_tfrecord(std::span<const std::byte> payload) {
    const std::uint64_t length = payload.size();
    const std::uint32_t head = masked_crc32c(bytes_of(length)), tail = masked_crc32c(payload);
    base::Status status = put(bytes_of(length));
    if (status) status = put(bytes_of(head));
    if (status) status = put(payload);
    return status ? put(bytes_of(tail)) : status;
  }

  /// Writes a member of a tar, by the record's name if that differs from the one before, else by
  /// its number.
  base::Status put_member(std::span<const std::byte> payload, const Dataset& input,
                          std::uint64_t record) {
    const Index& from = input.index();
    std::string number = std::to_string(written_before_ + written_ - 1);
    number.insert(0, kDigits - std::min(kDigits, number.size()), '0');
    number += input.format().kind == Kind::lines ? ".txt" : ".bin";
    TarMember member{.name = from.name(record), .size = payload.size()};
    if (sample_key(member.name).empty()) member.name = number;
    if (from.mode(record) != 0) member.mode = from.mode(record);
    member.modified =
        static_cast<std::uint64_t>(std::max<std::int64_t>(from.modification_time(record), 0)) /
        1'000'000'000;
    base::Status status = put(tar_head(member));
    if (status) status = put(payload);
    const std::vector<std::byte> zeros(base::round_up(payload.size(), kTarBlock) - payload.size());
    return status ? put(zeros) : status;
  }

  base::Status put(std::span<const std::byte> bytes) {
    offset_ += bytes.size();
    return cursor_ ? cursor_->put(bytes) : base::Status();
  }

  const ConvertRequest& request_;
  const Ranks& ranks_;
  std::vector<Dataset> inputs_;
  std::vector<std::uint64_t> firsts_;  ///< the first record of each input
  Meter meter_;
  std::unique_ptr<Output> output_;
  std::uint64_t records_ = 0, bytes_ = 0;  ///< of all inputs
  std::uint64_t first_ = 0, behind_ = 0;   ///< the records of this rank
  std::vector<Part> parts_;                ///< of each shard
  std::vector<std::uint64_t> sizes_;       ///< of each shard, if there are several ranks
  OutputCursor* cursor_ = nullptr;         ///< null: the places are computed
  std::vector<std::byte> memory_;          ///< a record
  std::uint64_t offset_ = 0;               ///< in a shard
  std::uint64_t whole_ = 0;                ///< bytes of the complete shards
  std::vector<std::uint64_t> places_;      ///< of each record: length and checksum
  std::uint64_t written_ = 0, damaged_ = 0, written_before_ = 0;  ///< by this rank; by ranks before
  std::uint64_t all_written_ = 0, all_skipped_ = 0;
  IndexBuilder index_;
  std::vector<Indexed> indices_;
  SkippedRecords skipped_;
};

base::Error invalid(const ConvertRequest& request, const std::string& what) {
  return {.number = EINVAL, .operation = "convert", .path = request.outputs[0], .detail = what};
}

/// Opens the inputs. EINVAL: the request cannot be carried out.
base::Result<std::vector<Dataset>> open_inputs(const ConvertRequest& request) {
  std::vector<Dataset> inputs;
  for (const std::string& path : request.inputs) {
    base::Result<Dataset> input = Dataset::open(path, request.damaged != OnDamage::ignore);
    if (!input.ok()) return input.error();
    if (std::ranges::any_of(request.outputs,
                            [&](const std::string& output) { return same_file(path, output); }))
      return invalid(request, "it is an input, too");
    if (request.kind == Kind::directory)
      return invalid(request,
                     std::string("records cannot be made ") + format_of(request.kind).name);
    if (input->file()) input->file()->expect_sequential();
    inputs.push_back(std::move(*input));
  }
  return inputs;
}

}  // namespace

base::Result<Converted> convert(const ConvertRequest& request, const Show& show) {
  base::Result<std::vector<Dataset>> inputs = open_inputs(request);
  if (base::Status status = request.ranks.together(inputs.status()); !status) return status.error();
  return Converter(request, std::move(*inputs), show).run();
}

}  // namespace pario::records
