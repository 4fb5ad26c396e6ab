#include "data/records/convert.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "data/records/checksum.hpp"
#include "data/records/dataset.hpp"
#include "data/records/output.hpp"
#include "data/records/packed.hpp"

namespace pario::records {
namespace {

constexpr std::uint64_t kWriting = 1 << 20;
constexpr std::size_t kDigits = 9;  // least digits of the number of a record

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

class Converter {
 public:
  Converter(const ConvertRequest& request, std::vector<Dataset> inputs,
            std::unique_ptr<Output> output, Meter& meter)
      : request_(request), inputs_(std::move(inputs)), output_(std::move(output)), meter_(meter) {
    for (const Dataset& input : inputs_) records_ += input.count();
  }

  base::Status run() {
    base::Result<OutputCursor> cursor = OutputCursor::make(*output_, kWriting);
    if (!cursor.ok()) return cursor.error();
    base::Status status = next_shard(*cursor);
    for (const Dataset& input : inputs_)
      for (std::uint64_t record = 0; record < input.count() && status && !meter_.is_stopped();
           ++record) {
        while (status && shard_ + 1 < output_->shards() && taken_ == first_of(shard_ + 1))
          status = next_shard(*cursor);
        if (status) status = take(input, record, *cursor);
        ++taken_;
      }
    while (status && shard_ + 1 < output_->shards()) status = next_shard(*cursor);
    return status ? close_shard(*cursor) : status;
  }
  base::Status finish() {
    base::Status status = output_->complete(offset_, format_of(request_.kind).trailer);
    return status ? publish_with_indexes(*output_, request_.outputs, indices_, Kind::raw) : status;
  }
  Converted outcome() const { return {written_, skipped_.numbers().size(), skipped_.first()}; }

 private:
  std::uint64_t first_of(std::uint32_t shard) const {
    return static_cast<std::uint64_t>(static_cast<unsigned __int128>(records_) * shard /
                                      output_->shards());
  }

  base::Status next_shard(OutputCursor& cursor) {
    if (begun_) {
      if (base::Status status = close_shard(cursor); !status) return status;
      ++shard_;
      output_->begins(shard_, offset_);
    }
    begun_ = true;
    shard_begin_ = offset_;
    return cursor.seek(shard_, 0);
  }

  /// Writes the end of a shard, after its records.
  base::Status close_shard(OutputCursor& cursor) {
    const std::uint64_t end = offset_ - shard_begin_;
    if (request_.kind == Kind::packed) {
      const auto tail = packed_tail(end, index_.finish(Kind::packed, end, {.size = end}));
      if (base::Status status = cursor.put(tail); !status) return status;
      offset_ += tail.size();
    } else if (request_.kind == Kind::raw) {
      indices_.push_back({std::move(index_), end});
    }
    index_ = {};
    return cursor.flush();
  }

  base::Status take(const Dataset& input, std::uint64_t record, OutputCursor& cursor) {
    const std::uint64_t length = input.index().span(record).length();
    memory_.resize(length);
    const base::Result<base::Extent> data = input.read(record, memory_);
    if (!data.ok()) return skip(record, data.error());
    const bool as_it_is = input.format().kind == request_.kind && request_.kind != Kind::lines;
    const auto payload =
        as_it_is ? std::span<const std::byte>(memory_)
                 : std::span<const std::byte>(memory_).subspan(data->begin, data->length());
    index_.begin(offset_ - shard_begin_);
    if (request_.kind == Kind::packed) keep_name(input, record, payload);
    ++written_;
    meter_.add(length);
    return put(as_it_is ? Kind::raw : request_.kind, payload, input, record, cursor);
  }

  base::Status skip(std::uint64_t record, const base::Error& error) {
    if (request_.damaged != OnDamage::skip) return error;
    skipped_.add(record, error);
    return {};
  }

  void keep_name(const Dataset& input, std::uint64_t record, std::span<const std::byte> payload) {
    const Index& from = input.index();
    index_.name(from.name(record), from.mode(record), from.modification_time(record));
    std::uint64_t sum = 0;
    for (std::uint64_t done = 0; done < payload.size() || done == 0; done += kSumPiece)
      sum = add_to_sum(
          sum, payload.subspan(done, std::min<std::uint64_t>(kSumPiece, payload.size() - done)));
    index_.sum(static_cast<std::uint32_t>(sum));
  }

  base::Status put(Kind kind, std::span<const std::byte> payload, const Dataset& input,
                   std::uint64_t record, OutputCursor& cursor) {
    if (kind == Kind::tfrecord) return put_tfrecord(payload, cursor);
    if (kind == Kind::tar) return put_member(payload, input, record, cursor);
    if (kind != Kind::lines) return put(payload, cursor);
    if (std::ranges::find(payload, std::byte{'\n'}) != payload.end())
      return base::Error{
          .number = EINVAL,
          .operation = "convert",
          .path = input.path(),
          .detail = "record " + std::to_string(record) + " holds a line feed and cannot be a line"};
    // Lines keep their own ends.
    const bool is_line = input.format().kind == Kind::lines && memory_.size() > payload.size();
    base::Status status = put(payload, cursor);
    return status ? put(is_line ? std::span<const std::byte>(memory_).subspan(payload.size())
                                : bytes_of('\n'),
                        cursor)
                  : status;
  }

  base::Status put_tfrecord(std::span<const std::byte> payload, OutputCursor& cursor) {
    const std::uint64_t length = payload.size();
    const std::uint32_t head = masked_crc32c(bytes_of(length)), tail = masked_crc32c(payload);
    base::Status status = put(bytes_of(length), cursor);
    if (status) status = put(bytes_of(head), cursor);
    if (status) status = put(payload, cursor);
    return status ? put(bytes_of(tail), cursor) : status;
  }

  /// Writes a member of a tar, by the record's name if that differs from the one before, else by
  /// its number.
  base::Status put_member(std::span<const std::byte> payload, const Dataset& input,
                          std::uint64_t record, OutputCursor& cursor) {
    const Index& from = input.index();
    std::string number = std::to_string(written_ - 1);
    number.insert(0, kDigits - std::min(kDigits, number.size()), '0');
    number += input.format().kind == Kind::lines ? ".txt" : ".bin";
    TarMember member{.name = from.name(record), .size = payload.size()};
    if (sample_key(member.name).empty()) member.name = number;
    if (from.mode(record) != 0) member.mode = from.mode(record);
    member.modified =
        static_cast<std::uint64_t>(std::max<std::int64_t>(from.modification_time(record), 0)) /
        1'000'000'000;
    base::Status status = put(tar_head(member), cursor);
    if (status) status = put(payload, cursor);
    const std::vector<std::byte> zeros(base::round_up(payload.size(), kTarBlock) - payload.size());
    return status ? put(zeros, cursor) : status;
  }

  base::Status put(std::span<const std::byte> bytes, OutputCursor& cursor) {
    offset_ += bytes.size();
    return cursor.put(bytes);
  }

  const ConvertRequest& request_;
  std::vector<Dataset> inputs_;
  std::unique_ptr<Output> output_;
  Meter& meter_;
  std::vector<std::byte> memory_;
  IndexBuilder index_;
  std::vector<Indexed> indices_;
  SkippedRecords skipped_;
  std::uint64_t records_ = 0, taken_ = 0, written_ = 0, offset_ = 0, shard_begin_ = 0;
  std::uint32_t shard_ = 0;
  bool begun_ = false;
};

base::Error invalid(const ConvertRequest& request, const std::string& what) {
  return {.number = EINVAL, .operation = "convert", .path = request.outputs[0], .detail = what};
}

}  // namespace

base::Result<Converted> convert(const ConvertRequest& request, const Show& show) {
  std::vector<Dataset> inputs;
  std::uint64_t bytes = 0;
  for (const std::string& path : request.inputs) {
    base::Result<Dataset> input = Dataset::open(path, request.damaged != OnDamage::ignore);
    if (!input.ok()) return input.error();
    if (std::ranges::any_of(request.outputs,
                            [&](const std::string& output) { return same_file(path, output); }))
      return invalid(request, "it is an input, too");
    if (request.kind == Kind::directory)
      return invalid(request,
                     std::string("records cannot be made ") + format_of(request.kind).name);
    bytes += input->index().whole().length();
    if (input->file()) input->file()->expect_sequential();
    inputs.push_back(std::move(*input));
  }
  auto output = Output::make(request.outputs, bytes, Caching::page_cache);
  if (!output.ok()) return output.error();
  Meter meter(show, bytes);
  Converter converter(request, std::move(inputs), std::move(*output), meter);
  base::Status status = run_team(1, meter, [&](unsigned) { return converter.run(); });
  if (status) status = converter.finish();
  return status ? base::Result<Converted>(converter.outcome()) : status.error();
}

}  // namespace pario::records
