#include "stream/stream.hpp"

#include <fcntl.h>
#include <sys/uio.h>

#include <sys/vfs.h>
#include <algorithm>

#include "stream/children.hpp"
#include "stream/figures.hpp"
#include "stream/mapped.hpp"
#include "stream/memory.hpp"
#include "stream/registry.hpp"
#include "stream/whole.hpp"
#include "stream/writer.hpp"
#include "trace/trace.hpp"

namespace pario::stream {
namespace {

long kernel_pwritev(int descriptor, const iovec* pieces, int count, std::uint64_t offset) {
  return base::system_call(SYS_pwritev, descriptor, pieces, count, offset, offset >> 32);
}
long kernel_write(int descriptor, const void* data, std::size_t size) { return base::system_call(SYS_write, descriptor, data, size); }
long kernel_preadv(int descriptor, const iovec* pieces, int count, std::uint64_t offset) {
  return base::system_call(SYS_preadv, descriptor, pieces, count, offset, offset >> 32);
}
long kernel_seek(int descriptor, std::int64_t offset, int whence) { return base::system_call(SYS_lseek, descriptor, offset, whence); }

layout::Kind kernel_kind(int descriptor) {
  struct statfs system{};
  if (base::system_call(SYS_fstatfs, descriptor, &system) < 0) return layout::Kind::unknown;
  return layout::kind_of_magic(static_cast<std::uint32_t>(system.f_type));
}
long kernel_store(int descriptor, std::uint64_t offset, std::uint64_t bytes) {
  return base::system_call(SYS_sync_file_range, descriptor, offset, bytes, SYNC_FILE_RANGE_WRITE);
}

constinit std::mutex mutex;  // who comes and goes
constinit Handle handles[registry::kMostHandles];

File* find(dev_t device, ino_t inode) {
  for (File& file : registry::known())
    if (file.is(device, inode)) return &file;
  return nullptr;
}

/// When the first file was opened, for the length of a tick.
const base::Anchor& first_moment() {
  static const base::Anchor moment = (base::choose_clock(), base::anchor());
  return moment;
}

void say_figures_once(File& file) {
  if (file.take_verbose()) say_figures(file.path(), file.hints(), file.statistics(), static_cast<double>(base::tick_rate(first_moment())));
}

/// Files that this process has closed and its children may still have: buffered again when these are gone, should it open them again.
class WithChildren {
 public:
  void add(const File& file) {
    const Name name{file.device(), file.inode()};
    if (knows(name)) return;
    if (count_ < std::size(files_)) files_[count_] = name;
    ++count_;  // more than there is room for: it may be any
  }
  bool has(const struct stat& status) {
    if (count_ == 0) return false;
    if (children::fate() == children::Fate::gone) return clear(), false;
    return knows({status.st_dev, status.st_ino});
  }
  void clear() { count_ = 0; }

 private:
  struct Name {
    dev_t device;
    ino_t inode;
    bool operator==(const Name&) const = default;
  };
  bool knows(Name name) const {
    const std::span<const Name> known(files_, std::min(count_, std::size(files_)));
    return count_ > known.size() || std::ranges::find(known, name) != known.end();
  }

  Name files_[64] = {};
  std::size_t count_ = 0;
};
constinit WithChildren with_children;

void end_file(File& file) {
  say_figures_once(file);
  if (file.forked()) with_children.add(file);
  file.end();
  registry::in_use.fetch_sub(1, std::memory_order_release);
}

void count_in(const File& file) {
  const auto number = static_cast<std::size_t>(&file - registry::files);
  registry::end.store(std::max(registry::end.load(std::memory_order_relaxed), number + 1), std::memory_order_release);
  registry::in_use.fetch_add(1, std::memory_order_release);
}

/// Whether bytes are read and written there at all.
bool holds_bytes(int descriptor, int flags, struct stat& status) {
  return (flags & O_PATH) == 0 && kernel.status(descriptor, status) == 0 && !S_ISDIR(status.st_mode);
}

/// A file that is read once is not read directly by most.
bool passes_directly(int flags, const hints::StreamHints& hints) {
  return (flags & O_DIRECT) != 0 && !(hints.read_once && (flags & O_ACCMODE) == O_RDONLY);
}

/// Why only the kernel can keep what it promises of an open description.
Reason reason_against(int flags, const hints::StreamHints& hints, const struct stat& status) {
  if (!S_ISREG(status.st_mode)) return Reason::no_file;
  if (passes_directly(flags, hints)) return Reason::direct;
  return (flags & (O_SYNC | O_DSYNC)) != 0 ? Reason::synchronous : Reason::none;
}

/// Processes of a node share the pages that the kernel keeps of a local file.
bool is_worth_a_copy(layout::Kind kind, int flags, const hints::StreamHints& hints, std::string_view path) {
  const bool local = kind == layout::Kind::local || kind == layout::Kind::tmpfs || kind == layout::Kind::unknown;
  if (!local || (flags & O_DIRECT) != 0) return (flags & O_ACCMODE) == O_RDONLY;
  base::Text<640> text;
  if (hints.verbose) tell(text.add(path).add(": read_once is not needed: it is a local file, of which the node has one copy").view());
  return false;
}

/// Null, and a reason: there is no room.
File* begin_file(int descriptor, int flags, const struct stat& status, hints::StreamHints hints, std::string_view path,
                 const Origin& origin, Reason& reason) {
  first_moment();
  const layout::Kind kind = kernel.kind(descriptor);
  stream::fill_in(hints, kind);
  hints.read_once = hints.read_once && is_worth_a_copy(kind, flags, hints, path);
  reason = Reason::many;
  for (File& file : registry::files) {
    if (file.used() || !writer::start()) continue;
    reason = Reason::memory;
    if (!file.begin(descriptor, status, hints, path, origin)) return nullptr;
    count_in(file);
    if (with_children.has(status)) file.leave(Reason::fork, children::fate() == children::Fate::alive);
    if (file.reason() != Reason::none) file.note_fork();
    return &file;
  }
  return nullptr;
}

/// Of a descriptor that this process was forked with, as far as can be told.
bool is_copy(int descriptor) {
  struct stat status;
  if (kernel.status(descriptor, status) != 0) return false;
  const File* file = find(status.st_dev, status.st_ino);
  return file != nullptr && file->inherited();
}

Handle* unused_handle() {
  for (Handle& handle : handles)
    if (handle.file == nullptr) return &handle;
  return nullptr;
}

}  // namespace

constinit File registry::files[kMostFiles];
constinit std::atomic<std::size_t> registry::in_use{0}, registry::end{0};

Kernel kernel{kernel_pwritev, kernel_write, kernel_preadv, kernel_seek, base::status_of, kernel_kind, kernel_store};

void tell(std::string_view sentence) {
  if (trace::on()) return trace::message(sentence);
  base::Text<2048> line;
  line.add("pario: ").add(sentence).add('\n');
  base::say(line.view());
}

void set_keeper(std::string_view name) { survive::set_keeper(name); }

void set_memory_limit(std::uint64_t bytes) { memory::set_limit(bytes); }

std::byte* take_memory(std::uint64_t bytes) { return whole::take_memory(bytes); }
void give_back_memory(std::byte* memory, std::uint64_t bytes) { memory::give_back(memory, bytes); }
void watch(void (*look)()) { writer::watch(look); }

Handle* open(int descriptor, int flags, const hints::StreamHints& hints, std::string_view path, const Origin& origin) {
  const std::uint64_t since = origin.since != 0 ? origin.since : trace::ticks();
  struct stat status;
  if (!holds_bytes(descriptor, flags, status)) return nullptr;
  Reason reason = reason_against(flags, hints, status);
  if (reason != Reason::none) return note(origin, hints, reason), nullptr;
  const std::scoped_lock lock(mutex);
  Handle* handle = unused_handle();
  File* file = find(status.st_dev, status.st_ino);
  if (file == nullptr && handle != nullptr) file = begin_file(descriptor, flags, status, hints, path, origin, reason);
  if (file != nullptr && (flags & O_DIRECT) != 0 && !file->is_read_once()) {
    if (file->is_unused()) file->end();
    file = nullptr;
    reason = Reason::direct;
  }
  if (file == nullptr || handle == nullptr) return note(origin, hints, handle == nullptr ? Reason::many : reason), nullptr;
  if (file->inherited()) note(origin, hints, file->reason());
  const int access = flags & O_ACCMODE;
  const bool appends = (flags & O_APPEND) != 0;
  *handle = {.offset = appends ? static_cast<std::uint64_t>(status.st_size) : 0,
             .descriptor = descriptor,
             .references = 1,
             .reads = access != O_WRONLY,
             .writes = access != O_RDONLY,
             .appends = appends};
  file->add(*handle, since);
  return handle;
}

void note(const Origin& origin, const hints::StreamHints& hints, Reason reason) {
  if (reason == Reason::none && audit::is_troubled(origin.record)) return;
  const bool stdio = origin.record != nullptr && origin.record->layer == static_cast<std::uint64_t>(trace::Layer::stdio);
  audit::enter(origin.record, {.specification = origin.specification, .reason = reason, .stdio = stdio}, hints);
}

void share(Handle& handle) {
  const std::scoped_lock lock(mutex);
  ++handle.references;
}

bool stands_for(const Handle& handle, int descriptor) {
  struct stat status;
  return kernel.status(descriptor, status) == 0 && handle.file->is(status.st_dev, status.st_ino);
}

long close(Handle& handle, int other) {
  const long error = handle.file->change_descriptor(handle, other >= 0 ? other : handle.descriptor);
  const std::scoped_lock lock(mutex);
  --handle.references;
  if (other >= 0) return error;
  File* file = handle.file;
  if (file->remove(handle)) end_file(*file);
  return error;
}

bool rest(Handle& handle, Rest how) {
  {
    const std::scoped_lock lock(mutex);
    if (handle.references != 1) return false;
  }
  return handle.file->rest(handle, how);
}

long write(Handle& handle, std::span<const iovec> pieces, At at) { return handle.file->write(handle, pieces, at); }
long read(Handle& handle, std::span<const iovec> pieces, At at) { return handle.file->read(handle, pieces, at); }
long seek(Handle& handle, std::int64_t offset, int whence) { return handle.file->seek(handle, offset, whence); }
std::uint64_t position(Handle& handle) { return handle.file->position(handle); }
long flush(Handle& handle) { return handle.file->flush(); }
void settle(Handle& handle) { handle.file->settle(); }
void resume(Handle& handle) { handle.file->resume(handle); }
void leave(Handle& handle, Reason reason) { handle.file->leave(reason); }
Statistics statistics(Handle& handle) { return handle.file->statistics(); }

void before_exec() {
  if (children::has_copies() && children::any_stays_open(is_copy)) children::hand_on();
}

void before_spawn() { children::hand_on(); }

bool idle() { return registry::in_use.load(std::memory_order_acquire) == 0; }

bool flush(dev_t device, ino_t inode) {
  if (idle()) return false;
  const std::scoped_lock lock(mutex);
  File* file = find(device, inode);
  if (file != nullptr) file->settle();
  return file != nullptr;
}

void flush_all() {
  registry::for_each_file([](File& file) {
    file.settle();
    file.publish();
  });
}

void leave(dev_t device, ino_t inode, Reason reason) {
  const std::scoped_lock lock(mutex);
  if (File* file = find(device, inode)) file->leave(reason);
}

void leave_all(Reason reason) {
  registry::for_each_file([=](File& file) { file.leave(reason); });
}

void read_mapped(Handle& handle, const void* address, base::Extent range) {
  const hints::StreamHints& hints = handle.file->hints();
  if (hints.map_ahead) mapped::begin(address, range, handle.descriptor, hints.readers);
}
void forget_mapped(const void* address) { mapped::end(address); }

void end() {
  leave_all(Reason::none);
  registry::for_each_file([](File& file) {
    file.publish();
    say_figures_once(file);
  });
  once::end();
}

void before_fork() {
  mutex.lock();
  const bool lost = children::before_fork() == children::Fate::unknown;
  const bool followed = !idle() && children::follow_next();
  registry::for_each_file([&](File& file) {
    file.leave(Reason::fork, followed && !(lost && file.paused()));
    file.note_fork();
  });
}

void after_fork_in_parent() {
  children::after_fork_in_parent();
  mutex.unlock();
}

void after_fork_in_child() {
  new (&mutex) std::mutex;
  children::after_fork_in_child();
  with_children.clear();
  registry::for_each_file([](File& file) { file.inherit(); });
  for (Handle& handle : handles) handle = {};
  audit::forget();
  once::forget();
  whole::forget();
  mapped::forget();
  writer::forget();
}

void rescue() {
  registry::for_each_file([](File& file) { file.rescue(); });
}

}  // namespace pario::stream
