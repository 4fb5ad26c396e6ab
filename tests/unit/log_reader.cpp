#include "log_reader.hpp"

#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "core/base/base.hpp"
#include "core/trace/columns.hpp"
#include "core/trace/format.hpp"
#include "read_file.hpp"

namespace {

using namespace pario::trace;

/// Collects the blocks of one log.
class Reader {
 public:
  explicit Reader(std::string data) : data_(std::move(data)) {}

  ReadLog read() {
    for (std::size_t at = 0; at + sizeof(BlockHeader) <= data_.size();) at = read_block(at);
    for (const Record& record : log_.records) log_.paths.push_back(path_at(record.path));
    return std::move(log_);
  }

 private:
  std::size_t read_block(std::size_t at) {
    std::memcpy(&header_, &data_[at], sizeof header_);
    if (header_.magic != kBlockMagic) {
      ++log_.pages_passed;
      return at + kPage;
    }
    if (header_.size % kPage != 0 || at + header_.size > data_.size())
      throw std::runtime_error("block of odd size");
    payload_ = std::string_view(data_).substr(at + sizeof header_, header_.size - sizeof header_);
    take_block();
    return at + header_.size;
  }

  void take_block() {
    switch (header_.kind) {
      case BlockKind::process:
        std::memcpy(&log_.process, payload_.data(), sizeof(Process));
        return;
      case BlockKind::schema:
        log_.schema = payload();
        return;
      case BlockKind::records:
        return append(log_.records, payload_, header_.count);
      case BlockKind::strings:
        strings_[header_.index] = payload_;
        return;
      case BlockKind::thread:
        return take_thread();
      case BlockKind::events:
        return take_chunk();
      case BlockKind::notes:
        return take_notes();
      case BlockKind::sites:
        throw std::runtime_error("block of call sites: this reader has no table for them");
    }
    throw std::runtime_error("block of unknown kind");
  }

  /// Returns the payload of a written block.
  std::string payload() const {
    const std::string_view used = payload_.substr(0, header_.used);
    if (pario::base::xxh64(used) != header_.checksum) throw std::runtime_error("wrong checksum");
    return std::string(used);
  }

  template <class T>
  static void append(std::vector<T>& to, std::string_view from, std::size_t count) {
    if (count == 0) return;  // an empty vector has no address
    const std::size_t old = to.size();
    to.resize(old + count);
    std::memcpy(static_cast<void*>(to.data() + old), from.data(), count * sizeof(T));
  }

  void take_thread() {
    ++log_.threads;
    std::vector<FunctionRow> rows;
    append(rows, payload_, header_.aux2);
    for (unsigned id = 0; id < rows.size(); ++id) log_.calls[id] += rows[id].calls;
    append(log_.events, payload_.substr(header_.aux1), header_.count);
    constexpr std::size_t kCalls = kNestedCalls * sizeof(CallRow);
    append(log_.in_progress, payload_.substr(header_.aux1 - kCalls), kNestedCalls);
    log_.tail_events += header_.count;
  }

  void take_chunk() {
    ++log_.chunks;
    const std::string frame = payload();
    std::vector<std::byte> columns(header_.aux0);
    const std::size_t size =
        ZSTD_decompress(columns.data(), columns.size(), frame.data(), frame.size());
    if (size != header_.count * sizeof(Event) || size != header_.aux0)
      throw std::runtime_error("wrong size of a chunk");
    log_.events.resize(log_.events.size() + header_.count);
    decode_columns(columns.data(), std::span(log_.events).last(header_.count));
  }

  void take_notes() {
    std::string_view rest = payload_.substr(0, header_.used);
    for (; !rest.empty(); rest.remove_prefix(rest.find('\n') + 1))
      log_.notes.emplace_back(rest.substr(0, rest.find('\n')));
  }

  std::string path_at(std::uint64_t address) const {
    const std::string_view block = strings_.at(address >> 32).substr(address & 0xFFFFFFFF);
    std::uint32_t length;
    std::memcpy(&length, block.data(), sizeof length);
    return std::string(block.substr(sizeof length, length));
  }

  std::string data_;
  std::string_view payload_;
  BlockHeader header_{};
  std::map<std::uint64_t, std::string_view> strings_;
  ReadLog log_;
};

}  // namespace

const Record& ReadLog::record(const std::string& path, Layer layer) const {
  for (std::size_t i = 0; i < records.size(); ++i)
    if (paths[i] == path && records[i].layer == static_cast<std::uint64_t>(layer))
      return records[i];
  throw std::runtime_error("no record of " + path);
}

bool ReadLog::has_record(const std::string& path, Layer layer) const {
  for (std::size_t i = 0; i < records.size(); ++i)
    if (paths[i] == path && records[i].layer == static_cast<std::uint64_t>(layer)) return true;
  return false;
}

std::size_t ReadLog::notes_with(const std::string& text) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      notes, [&](const std::string& note) { return note.find(text) != note.npos; }));
}

ReadLog read_log(const std::string& file) { return Reader(pario::read_file(file)).read(); }

std::vector<std::string> logs_in(const std::string& directory) {
  std::vector<std::string> logs;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    if (entry.path().extension() == ".plog") logs.push_back(entry.path().string());
  std::ranges::sort(logs);
  return logs;
}

ReadLog read_only_log(const std::string& directory) {
  const auto logs = logs_in(directory);
  if (logs.size() != 1)
    throw std::runtime_error(std::to_string(logs.size()) + " logs instead of one");
  return read_log(logs.front());
}
