// MPI_File_*: runs a call and records it in the log.
#include <fcntl.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "core/base/base.hpp"
#include "observe/pmpi/bytes.hpp"
#include "observe/pmpi/communicators.hpp"
#include "observe/pmpi/hints.hpp"
#include "observe/pmpi/invocation.hpp"
#include "observe/pmpi/lifetime.hpp"
#include "parallel/mpiio/mpiio.hpp"

namespace pario::pmpi {
namespace {

/// Limits of a process: bytes of notes on views, and characters of a noted layout.
constexpr std::uint64_t kNotedBytes = 1 << 20, kNotedCharacters = 8192;

/// The part of a view that determines the offset of a call.
struct View {
  bool contiguous = true;  ///< offsets in etypes are offsets in bytes, scaled
  std::int64_t displacement = 0;
  std::int64_t etype_size = 1;

  /// The offset in the file or, if the view has holes, in the data that the view shows.
  std::uint64_t byte_offset(std::int64_t etypes) const {
    return static_cast<std::uint64_t>((contiguous ? displacement : 0) + etypes * etype_size);
  }
};

struct OpenFile {
  trace::Record* record = nullptr;
  View view;
  HintNotes hints;
};

/// The open files, by handle; never destroyed, because destructors call MPI, too.
struct OpenFiles {
  std::mutex mutex;
  std::unordered_map<Word, std::shared_ptr<OpenFile>> by_handle;
};

OpenFiles& open_files() {
  static OpenFiles& instance = *new OpenFiles;
  return instance;
}

std::shared_ptr<OpenFile> find(Word handle) {
  auto& all = open_files();
  const std::lock_guard lock(all.mutex);
  const auto found = all.by_handle.find(handle);
  return found == all.by_handle.end() ? nullptr : found->second;
}

trace::FileFacts facts_of_path(void* path) {
  return trace::facts_of(static_cast<base::Path*>(path)->c_str());
}

trace::Record* record_of(const char* name) {
  base::Path path(AT_FDCWD, mpiio::without_driver(name));
  return trace::find_record(trace::Layer::mpiio, path.view(), facts_of_path, &path);
}

trace::Call entry_of(const Invocation& call) {
  trace::Call entry{.function = call.number_in_log(),
                    .op = call.function.op,
                    .start = call.start,
                    .end = call.end};
  entry.result = call.has_succeeded() ? 0 : -1;
  entry.flags = call.function.how & kAll ? trace::kCollective : 0;
  return entry;
}

/// Sets the facts of a call on an open file that the log shows during the call.
void show(Invocation& call, const OpenFile& file, std::uint64_t offset = trace::kUnknownOffset) {
  call.shown.file = trace::index_of(file.record);
  call.shown.offset = offset;
  call.shown.flags = call.function.how & kAll ? trace::kCollective : 0;
}

/// The same for an opening, whose `file` is a communicator.
void show_open(Invocation& call, const char* name) {
  call.shown.path = name;
  call.shown.flags = trace::kCollective;
  if (const Communicator* comm = find_communicator(call.mpi.handle(call[0])))
    call.shown.file = comm->number;
}

Word open(Invocation& call) {
  const auto* name = reinterpret_cast<const char*>(call[1]);
  show_open(call, name);
  call.run();
  trace::Record* const record = record_of(name);
  auto entry = entry_of(call);
  entry.open_flags = static_cast<std::uint32_t>(call.integer(2));
  if (!call.has_succeeded()) {
    trace::count(record, entry);
    return call.result;
  }
  auto& comm = communicator(call.mpi, call.mpi.handle(call[0]));
  agree_on_id(call.mpi, comm);
  entry.end = trace::ticks();
  if (comm.size == 1) entry.flags = 0;
  trace::count(record, entry);
  trace::set(record, &trace::Record::communicator, comm.number);
  auto file = std::make_shared<OpenFile>();
  file->record = record;
  const Word handle = *reinterpret_cast<const Word*>(call[4]);
  file->hints.note_open(call.mpi, handle, trace::index_of(record), call[3]);
  auto& all = open_files();
  const std::lock_guard lock(all.mutex);
  all.by_handle[handle] = std::move(file);
  return call.result;
}

Word close(Invocation& call) {
  const Word handle = call[0] ? *reinterpret_cast<const Word*>(call[0]) : 0;
  const auto file = find(handle);
  if (file) {
    file->hints.note_close(call.mpi, handle, trace::index_of(file->record));
    show(call, *file);
  }
  call.run();
  if (!file) return call.result;
  trace::count(file->record, entry_of(call));
  auto& all = open_files();
  const std::lock_guard lock(all.mutex);
  if (call.has_succeeded() && all.by_handle[handle] == file) all.by_handle.erase(handle);
  return call.result;
}

Word remove(Invocation& call) {
  const auto* name = reinterpret_cast<const char*>(call[0]);
  call.shown.path = name;
  call.run();
  trace::count(record_of(name), entry_of(call));
  return call.result;
}

View view_of(const Invocation& call) {
  const Library& mpi = call.mpi;
  View view{.displacement = static_cast<std::int64_t>(call[1])};
  std::int64_t size = 0;
  std::intptr_t lower = 0, extent = 0;
  mpi.type_size(call[2], &view.etype_size);
  mpi.type_size(call[3], &size);
  mpi.type_extent(call[3], &lower, &extent);
  view.contiguous = size == extent && lower == 0 &&
                    view.displacement != mpi.value(mpi::Constant::MPI_DISPLACEMENT_CURRENT);
  return view;
}

/// Writes the note `view`: the bytes of the file that later calls access.
void note_view(const Invocation& call, const OpenFile& file) {
  static std::atomic<std::uint64_t> noted{0};
  if (noted.load(std::memory_order_relaxed) >= kNotedBytes) return;
  base::Text<16384> text;
  base::Json json(text);
  json.begin_object().member("note", "view").member("record", trace::index_of(file.record));
  json.member("displacement", file.view.displacement).member("bytes", file.view.etype_size);
  json.member("layout",
              std::string_view(mpiio::layout_text(call.mpi.handle(call[3]), kNotedCharacters)))
      .end_object();
  if (!text.complete()) return;
  noted.fetch_add(json.view().size(), std::memory_order_relaxed);
  trace::note(json.view());
}

void set_view(const Invocation& call, OpenFile& file) {
  file.view = view_of(call);
  trace::add(file.record, &trace::Record::views, 1);
  note_view(call, file);
  file.hints.note_request(call.mpi, trace::index_of(file.record), call[5]);
}

/// Returns the individual file pointer, in the unit of View::byte_offset().
std::uint64_t pointer_offset(Word handle, const View& view) {
  const auto position =
      reinterpret_cast<int (*)(Word, std::int64_t*)>(file_function(Id::File_get_position));
  std::int64_t etypes = 0;
  return position(handle, &etypes) == 0 ? view.byte_offset(etypes) : trace::kUnknownOffset;
}

/// A read or write: its arguments and the bytes that it moves.
class Transfer {
 public:
  Transfer(Invocation& call, const OpenFile& file)
      : call_(call), file_(file), how_(call.function.how), buffer_(how_ & kAt ? 2 : 1) {
    if (how_ & kAt) {
      offset_ = file.view.byte_offset(static_cast<std::int64_t>(call[1]));
    } else if (!(how_ & kSharedPointer)) {
      offset_ = pointer_offset(call[0], file.view);
    }
    show(call, file, offset_);
    const bool has_status = !(how_ & (kNonblocking | kSplit));
    if (!has_status) return;
    if (call[status()] == call.mpi.status_ignore)
      call.arguments[status()] = reinterpret_cast<Word>(call.own_status);
  }

  void record() const {
    auto entry = entry_of(call_);
    entry.offset = offset_;
    if (offset_ != trace::kUnknownOffset && !file_.view.contiguous) entry.flags |= trace::kInView;
    if (call_.has_succeeded()) {
      entry.asked = bytes_of(call_.mpi, call_.count(buffer_ + 1), call_[buffer_ + 2]);
      entry.result = static_cast<std::int64_t>(bytes_moved(entry.asked));
      if (entry.op == trace::Op::write) entry.data = reinterpret_cast<const void*>(call_[buffer_]);
    }
    trace::count(file_.record, entry);
    if (how_ & kNonblocking) trace::add(file_.record, &trace::Record::nonblocking_calls, 1);
    if (!file_.view.contiguous) trace::add(file_.record, &trace::Record::noncontiguous_calls, 1);
  }

 private:
  int status() const { return buffer_ + 3; }

  /// Returns the bytes of the status; `asked` if the call has no status yet.
  std::uint64_t bytes_moved(std::uint64_t asked) const {
    std::int64_t bytes = 0;
    if (how_ & (kNonblocking | kSplit)) return asked;
    if (call_.mpi.get_elements(reinterpret_cast<const void*>(call_[status()]), call_.mpi.byte,
                               &bytes) != 0 ||
        bytes < 0)
      return asked;
    return static_cast<std::uint64_t>(bytes);
  }

  Invocation& call_;
  const OpenFile& file_;
  std::uint8_t how_;
  int buffer_;
  std::uint64_t offset_ = trace::kUnknownOffset;
};

Word transfer(Invocation& call, const OpenFile& file) {
  Transfer data(call, file);
  call.run();
  data.record();
  return call.result;
}

/// Runs and records any other call on an open file.
Word run_other(Invocation& call, OpenFile& file) {
  show(call, file);
  call.run();
  auto entry = entry_of(call);
  if (call.function.op == trace::Op::truncate) entry.offset = call[1];
  trace::count(file.record, entry);
  if (!call.has_succeeded()) return call.result;
  if (call.id == Id::File_set_view) set_view(call, file);
  if (call.id == Id::File_set_info)
    file.hints.note_request(call.mpi, trace::index_of(file.record), call[1]);
  return call.result;
}

}  // namespace

Word do_file_io(Invocation& call) {
  if (call.id == Id::File_open) return open(call);
  if (call.id == Id::File_close) return close(call);
  if (call.id == Id::File_delete) return remove(call);
  const auto file = find(call[0]);
  if (!file) {
    call.run();
    return call.result;
  }
  const bool moves_data =
      call.function.op == trace::Op::read || call.function.op == trace::Op::write;
  return moves_data ? transfer(call, *file) : run_other(call, *file);
}

}  // namespace pario::pmpi
