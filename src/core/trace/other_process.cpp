// The calls in progress of other processes of this host, read from their logs. These may grow and
// change meanwhile, and their processes may end: bytes of the file are read, and never mapped.
#include <fcntl.h>

#include <algorithm>
#include <cstring>

#include "core/base/base.hpp"
#include "core/base/descriptor.hpp"
#include "core/trace/state.hpp"

namespace pario::trace {
namespace {

constexpr std::string_view kSuffix = ".plog";

/// The log of any process, open for reading.
class OtherLog {
 public:
  explicit OtherLog(const char* path) : file_(base::open_file(path, O_RDONLY)) {}

  bool read(void* data, std::size_t size, std::uint64_t place) const {
    const long got = base::system_call(SYS_pread64, file_.number(), data, size, place);
    if (got < 0) return false;
    bump(process().tracer_reads);
    bump(process().tracer_bytes_read, static_cast<std::uint64_t>(got));
    return static_cast<std::size_t>(got) == size;
  }

  /// Calls `use` with the header and the place of the payload of each block of this kind, until it
  /// returns true; false if it never does.
  template <class Use>
  bool find_block(BlockKind kind, Use use) const {
    BlockHeader header{};
    for (std::uint64_t place = 0; read(&header, sizeof header, place);) {
      const bool is_block = header.magic == kBlockMagic && header.size >= kPage;
      if (is_block && header.kind == kind && use(header, place + sizeof header)) return true;
      place += is_block ? whole_pages(header.size) : kPage;
    }
    return false;
  }

  bool read_process(Process& row) const {
    return find_block(BlockKind::process, [&](const BlockHeader&, std::uint64_t payload) {
      return read(&row, sizeof row, payload);
    });
  }
  /// Identifies the layout of the log's rows and its table of functions; 0: not known.
  std::uint64_t schema() const {
    std::uint64_t checksum = 0;
    find_block(BlockKind::schema, [&](const BlockHeader& header, std::uint64_t) {
      checksum = header.checksum;
      return true;
    });
    return checksum;
  }

 private:
  base::RawDescriptor file_;
};

/// The names in a directory, one at a time.
class Names {
 public:
  explicit Names(const char* directory)
      : directory_(base::open_file(directory, O_RDONLY | O_DIRECTORY)) {}
  /// Returns the next name, valid until the next call; empty: no more.
  std::string_view next() {
    if (at_ == size_) {
      at_ = 0;
      size_ = base::read_entries(directory_.number(), entries_, sizeof entries_);
      if (size_ <= 0) return size_ = 0, std::string_view();
    }
    std::uint16_t length = 0;
    std::memcpy(&length, entries_ + at_ + kLengthAt, sizeof length);
    const char* name = entries_ + at_ + kNameAt;
    at_ += length;
    return name;
  }

 private:
  static constexpr long kLengthAt = 16, kNameAt = 19;  // members of linux_dirent64
  base::RawDescriptor directory_;
  long at_ = 0, size_ = 0;
  alignas(8) char entries_[4096];
};

using Path = base::Text<4096>;

/// This process's log is DIRECTORY/HOST.PID.START.plog.
struct LogName {
  std::string_view directory, host;

  static LogName own() {
    const std::string_view path = state.log.path();
    const auto slash = path.rfind('/');
    if (slash == path.npos) return {};
    std::string_view host = path.substr(slash + 1);
    for (int part = 0; part < 3; ++part) host = host.substr(0, host.rfind('.'));
    return {path.substr(0, slash), host};
  }
};

/// True if `row` is the running MPI process of the same program with this rank.
bool is_rank(const Process& row, int world_rank) {
  base::Text<32> of_process;
  struct stat status{};
  return row.end == 0 && row.mpi_rank == static_cast<std::uint64_t>(world_rank) + 1 &&
         row.mpi_size == process().mpi_size &&
         base::status_of(of_process.add("/proc/").add(row.pid).c_str(), status) == 0;
}

/// The name of a log; the latest image of a process has the greatest one.
class LatestName {
 public:
  bool empty() const { return size_ == 0; }
  std::string_view view() const { return {name_, size_}; }
  void offer(std::string_view name) {
    if (name > view() && name.size() <= sizeof name_) size_ = name.copy(name_, sizeof name_);
  }

 private:
  char name_[256];
  std::size_t size_ = 0;
};

/// Appends the path of the log of a process's latest image, by its PID, or by its rank if `pid` is
/// 0. False if it has none, or if several processes have this rank.
bool find_log(const LogName& own, std::uint64_t pid, int world_rank, Path& path) {
  base::Text<512> prefix;
  prefix.add(own.host).add('.');
  if (pid != 0) prefix.add(pid).add('.');
  Path directory;
  LatestName latest;
  Names names(directory.add(own.directory).c_str());
  for (std::string_view name = names.next(); !name.empty(); name = names.next()) {
    if (!name.starts_with(prefix.view()) || !name.ends_with(kSuffix)) continue;
    if (pid == 0) {
      Path candidate;
      Process row;
      candidate.add(own.directory).add('/').add(name);
      if (!OtherLog(candidate.c_str()).read_process(row) || !is_rank(row, world_rank)) continue;
      if (!latest.empty()) return false;
    }
    latest.offer(name);
  }
  path.add(own.directory).add('/').add(latest.view());
  return !latest.empty() && path.complete();
}

using CallRows = CallRow[kNestedCalls];

/// Reads the calls in progress of a thread; a call that does not last is left out.
bool read_calls(const OtherLog& log, const BlockHeader& header, std::uint64_t payload,
                CallRows& rows) {
  CallRows again;
  if (header.aux1 < sizeof rows) return false;
  const std::uint64_t place = payload + header.aux1 - sizeof rows;
  if (!log.read(rows, sizeof rows, place) || !log.read(again, sizeof again, place)) return false;
  for (std::uint32_t i = 0; i < kNestedCalls; ++i)
    if (std::memcmp(&rows[i], &again[i], sizeof rows[i]) != 0) rows[i].start = 0;
  return true;
}

/// The outermost and the innermost call of a thread; null: none.
struct Nest {
  const CallRow *outer = nullptr, *inner = nullptr;

  explicit Nest(const CallRows& rows) {
    for (const CallRow& row : rows) {
      if (row.start == 0) continue;
      if (outer == nullptr) outer = &row;
      inner = &row;
    }
  }
};

/// Reads the path of a row of records into `out`.
bool read_path(const OtherLog& log, std::uint32_t row, char* out, std::size_t size) {
  std::uint64_t first = 0;  // row of the block
  Record record = {};
  const auto read_record = [&](const BlockHeader& header, std::uint64_t payload) {
    const std::uint64_t index = row - first;
    first += header.count;
    return index < header.count &&
           log.read(&record, sizeof record, payload + index * sizeof record);
  };
  const auto read_string = [&](const BlockHeader& header, std::uint64_t payload) {
    const std::uint64_t place = payload + static_cast<std::uint32_t>(record.path);
    std::uint32_t length = 0;
    if (header.index != record.path >> 32 || !log.read(&length, sizeof length, place)) return false;
    length = std::min(length, static_cast<std::uint32_t>(size - 1));
    out[length] = '\0';
    return log.read(out, length, place + sizeof length);
  };
  return log.find_block(BlockKind::records, read_record) && record.row == row &&
         log.find_block(BlockKind::strings, read_string);
}

bool is_io(const FunctionInfo& function) {
  const auto names = layer_names();
  return std::ranges::find(names, std::string_view(function.category)) != names.end();
}

/// Sets the path of a call, if it is one on a file.
void find_path(const OtherLog& log, const CallRow& call, OtherCall& out) {
  const FunctionInfo& function = functions()[call.function];
  const bool opens = std::string_view(function.category) == "mpiio" && function.op == Op::open;
  if ((call.flags & kNamed) != 0)
    std::memcpy(out.path, call.path, sizeof call.path);  // ends with a zero
  else if (is_io(function) && !opens && call.file != kNoFile &&
           !read_path(log, call.file, out.path, sizeof out.path))
    out.path[0] = '\0';
}

bool is_known(const CallRow& call) {
  return call.function < functions().size() && functions()[call.function].name != nullptr;
}

void describe(const OtherLog& log, const Nest& nest, OtherCall& out) {
  if (!is_known(*nest.outer) || !is_known(*nest.inner)) return;
  out.state = OtherCall::State::inside;
  out.outer = &functions()[nest.outer->function];
  out.inner = &functions()[nest.inner->function];
  out.offset = nest.outer->offset;
  const std::uint64_t now = ticks(), passed = now - std::min(now, nest.outer->start);
  out.seconds = static_cast<double>(passed) / static_cast<double>(std::max(tick_rate(), 1UL));
  find_path(log, *nest.outer, out);
  if (out.path[0] == '\0') find_path(log, *nest.inner, out);
}

/// Finds the call that has lasted longest, over all threads.
void find_call(const OtherLog& log, OtherCall& out) {
  CallRows rows, longest = {};
  log.find_block(BlockKind::thread, [&](const BlockHeader& header, std::uint64_t payload) {
    if (!read_calls(log, header, payload, rows)) return false;
    const Nest nest(rows), known(longest);
    const bool is_longer =
        nest.outer != nullptr && (known.outer == nullptr || nest.outer->start < known.outer->start);
    if (is_longer) std::memcpy(longest, rows, sizeof rows);
    return false;
  });
  out.state = OtherCall::State::outside;
  const Nest nest(longest);
  if (nest.outer != nullptr) describe(log, nest, out);
}

}  // namespace

OtherCall call_of_process(std::uint64_t pid, int world_rank) {
  OtherCall out;
  Path path;
  const LogName own = LogName::own();
  if (!on() || own.host.empty() || !find_log(own, pid, world_rank, path)) return out;
  const Inside inside;
  const OtherLog log(path.c_str()), mine(state.log.path());
  Process row;
  const std::uint64_t schema = log.schema();
  if (!log.read_process(row) || schema == 0 || schema != mine.schema()) return out;
  if (row.end != 0)
    out.state = OtherCall::State::ended;
  else
    find_call(log, out);
  return out;
}

}  // namespace pario::trace
