#include "instruments/lab/file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "core/base/sleep.hpp"
#include "core/base/transfers.hpp"

namespace pario::lab {
namespace {

Descriptor open_tree(const std::string& path) {
  struct stat facts{};
  if (::lstat(path.c_str(), &facts) != 0) return Descriptor();
  if (!S_ISREG(facts.st_mode)) return errno = EINVAL, Descriptor();
  Descriptor both(::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
  return both.is_open() ? std::move(both)
                        : Descriptor(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
}

/// Writes all bytes. Returns their number, or -1.
long write_all(int descriptor, std::span<const std::byte> data, std::uint64_t offset) {
  const bool is_complete = base::pwrite_all(descriptor, data, offset).bytes == data.size();
  return is_complete ? static_cast<long>(data.size()) : -1;
}

/// Reads all bytes, with zeros for holes. Returns their number, or -1. Without a descriptor all
/// bytes are zeros.
long read_all(int descriptor, std::span<std::byte> out, std::uint64_t offset) {
  const base::Moved read =
      descriptor < 0 ? base::Moved{} : base::pread_all(descriptor, out, offset);
  if (read.number != 0) return -1;
  std::ranges::fill(out.subspan(read.bytes), std::byte{0});
  return static_cast<long>(out.size());
}

}  // namespace

LabFile::LabFile(const Store& store, Targets& targets, Descriptor tree,
                 std::shared_ptr<const Placement> placement)
    : store_(store), targets_(targets), tree_(std::move(tree)), placement_(std::move(placement)) {
  struct stat facts{};
  if (::fstat(tree_.number(), &facts) == 0) size_ = static_cast<std::uint64_t>(facts.st_size);
}

LabFile::~LabFile() {
  if (removed_) remove_objects();
}

std::uint64_t LabFile::size() const {
  const std::scoped_lock guard(mutex_);
  return size_;
}

std::shared_ptr<const Placement> LabFile::placement() const {
  const std::shared_lock unchanged(cutting_);
  return placement_;
}

long LabFile::write(Client client, std::span<const char> data, std::uint64_t offset, bool append) {
  Moment resume = 0;
  long done = 0;
  {
    const std::shared_lock uncut(cutting_);
    if (append) offset = size();  // the kernel lets one process append at a time
    const auto extent = base::Extent::at(offset, data.size());
    resume = book(client, Kind::write, extent).resume;
    done = move(extent, const_cast<char*>(data.data()), true);
    const int grown = done > 0 ? grow(offset + static_cast<std::uint64_t>(done)) : 0;
    if (grown < 0) return grown;
  }
  base::sleep_until_ns(resume);
  return done;
}

long LabFile::read(Client client, std::span<char> data, std::uint64_t offset) {
  Moment resume = 0;
  long done = 0;
  {
    const std::shared_lock uncut(cutting_);
    const std::uint64_t end = size();
    const auto extent = base::intersection(base::Extent::at(offset, data.size()), {0, end});
    if (extent.empty()) return 0;
    resume = book(client, Kind::read, extent).resume;
    done = move(extent, data.data(), false);
  }
  base::sleep_until_ns(resume);
  return done;
}

/// Returns one request per object: its bytes are contiguous there.
std::vector<Request> LabFile::requests(Client client, Kind kind, base::Extent extent) {
  std::map<ObjectName, Request> found;
  std::map<ObjectName, std::uint64_t> begins;
  for (const ObjectPart& piece : pieces(extent)) {
    found.try_emplace(piece.object, Request{piece.target, 0}).first->second.bytes +=
        piece.range.length();
    begins.try_emplace(piece.object, piece.inside);
  }
  std::vector<Request> out;
  for (auto& [name, request] : found) {
    Object& object = objects_[name];
    Continuation& before = kind == Kind::write ? object.writes : object.reads;
    request.handed_over = object.lock.acquire(client, kind == Kind::write);
    request.rest = before.continues(client, begins[name], request.bytes) && !request.handed_over;
    out.push_back(request);
  }
  return out;
}

Booked LabFile::book(Client client, Kind kind, base::Extent extent) {
  const std::scoped_lock guard(mutex_);
  const Booked booked =
      targets_.book(client, kind, requests(client, kind, extent), base::monotonic_ns());
  if (kind == Kind::write) written_[client] = std::max(written_[client], booked.done);
  return booked;
}

int LabFile::open(const ObjectPart& piece, bool create) {
  const std::scoped_lock guard(mutex_);
  Object& object = objects_[piece.object];
  if (!object.descriptor.is_open())
    object.descriptor =
        store_.open_object(piece.target, placement_->file_name(piece.object), create);
  return object.descriptor.number();
}

std::vector<ObjectPart> LabFile::pieces(base::Extent extent) const {
  return placement_ ? placement_->pieces(extent) : std::vector<ObjectPart>{};
}

long LabFile::move(base::Extent extent, char* data, bool writing) {
  if (!placement_ && writing) return -EIO;
  long done = 0;
  for (const ObjectPart& piece : pieces(extent)) {
    const long now = move_piece(piece, data + (piece.range.begin - extent.begin), writing);
    if (now < 0) return done > 0 ? done : -errno;
    done += now;
  }
  return done;
}

long LabFile::move_piece(const ObjectPart& piece, char* data, bool writing) {
  const int descriptor = open(piece, writing);
  const std::span bytes(reinterpret_cast<std::byte*>(data), piece.range.length());
  if (writing) return descriptor < 0 ? -1 : write_all(descriptor, bytes, piece.inside);
  return descriptor < 0 && errno != ENOENT ? -1 : read_all(descriptor, bytes, piece.inside);
}

int LabFile::grow(std::uint64_t size) {
  const std::scoped_lock guard(mutex_);
  constexpr timespec kTimes[] = {{0, UTIME_OMIT}, {0, UTIME_NOW}};
  if (size <= size_) return ::futimens(tree_.number(), kTimes) < 0 ? -errno : 0;
  if (::ftruncate(tree_.number(), static_cast<off_t>(size)) < 0) return -errno;
  size_ = size;
  return 0;
}

int LabFile::truncate(Client client, std::uint64_t size) {
  const std::uint64_t old = this->size();
  {
    const std::unique_lock alone(cutting_);
    const std::scoped_lock guard(mutex_);
    if (size < size_ && placement_) cut(size);
    if (::ftruncate(tree_.number(), static_cast<off_t>(size)) < 0) return -errno;
    size_ = size;
  }
  if (size < old) book_objects(client, old, true);
  return 0;
}

void LabFile::cut(std::uint64_t size) {
  for (const Placement::Object& object : placement_->objects(size_, size)) {
    const std::string name = placement_->file_name(object.name);
    if (placement_->ceph() && object.size == 0) {
      objects_.erase(object.name);
      store_.remove_object(object.target, name);
      continue;
    }
    const Descriptor descriptor = store_.open_object(object.target, name, false);
    struct stat facts{};
    if (!descriptor.is_open() || ::fstat(descriptor.number(), &facts) != 0) continue;
    if (static_cast<std::uint64_t>(facts.st_size) > object.size)
      ::ftruncate(descriptor.number(), static_cast<off_t>(object.size));
  }
}

int LabFile::punch(base::Extent extent) {
  const std::shared_lock uncut(cutting_);
  extent = base::intersection(extent, {0, size()});
  for (const ObjectPart& piece : pieces(extent)) {
    const int descriptor = open(piece, false);
    if (descriptor < 0) continue;
    const auto length = static_cast<off_t>(piece.range.length());
    if (::fallocate(descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    static_cast<off_t>(piece.inside), length) < 0)
      return -errno;
  }
  return 0;
}

long LabFile::seek(std::uint64_t offset, int whence) {
  const std::shared_lock uncut(cutting_);
  const std::uint64_t end = size();
  if (offset >= end) return -ENXIO;
  for (const ObjectPart& piece : pieces({offset, end})) {
    const int descriptor = open(piece, false);
    const long found =
        descriptor < 0 ? -1 : ::lseek(descriptor, static_cast<off_t>(piece.inside), whence);
    const std::uint64_t none =
        whence == SEEK_HOLE ? piece.inside : piece.inside + piece.range.length();
    const std::uint64_t at = found < 0 ? none : static_cast<std::uint64_t>(found);
    if (at < piece.inside + piece.range.length())
      return static_cast<long>(piece.range.begin + (at - piece.inside));
  }
  return whence == SEEK_HOLE ? static_cast<long>(end) : -ENXIO;
}

void LabFile::wait_for_writes(Client client) {
  Moment done = 0;
  {
    const std::scoped_lock guard(mutex_);
    if (const auto found = written_.find(client); found != written_.end()) done = found->second;
  }
  base::sleep_until_ns(done);
}

int LabFile::place(Client client, Placement placement) {
  {
    const std::unique_lock alone(cutting_);
    if (const int set = store_.set_record(tree_.number(), placement.record()); set < 0) return set;
    if (placement_) remove_objects();
    objects_.clear();
    placement_ = std::make_shared<const Placement>(std::move(placement));
  }
  book_objects(client, 0, true);
  return 0;
}

void LabFile::mark_removed(Client client) {
  book_objects(client, size(), false);
  const std::scoped_lock guard(mutex_);
  removed_ = true;
}

void LabFile::book_objects(Client client, std::uint64_t size, bool wait) {
  const auto placement = this->placement();
  if (!placement) return;
  std::vector<Request> requests;
  for (const Placement::Object& object : placement->objects(size))
    requests.push_back({object.target, 0});
  const Booked booked = targets_.book(client, Kind::other, requests, base::monotonic_ns());
  if (wait) base::sleep_until_ns(booked.done);
}

void LabFile::remove_objects() {
  if (!placement_) return;
  for (const Placement::Object& object : placement_->objects(size_))
    store_.remove_object(object.target, placement_->file_name(object.name));
}

std::shared_ptr<LabFile> Files::find_or_open(const std::string& path) {
  Descriptor tree = open_tree(path);
  return tree.is_open() ? find_or_open(std::move(tree)) : nullptr;
}

std::shared_ptr<LabFile> Files::find_or_open(Descriptor tree) {
  struct stat facts{};
  if (::fstat(tree.number(), &facts) != 0) return nullptr;
  const std::scoped_lock guard(mutex_);
  if (auto found = files_.find({facts.st_dev, facts.st_ino}); found != files_.end())
    if (auto file = found->second.lock()) return file;
  std::erase_if(files_, [](const auto& entry) { return entry.second.expired(); });
  const auto record = store_.record(tree.number());
  auto placement = record ? Placement::read(*record) : std::nullopt;
  auto shared = placement ? std::make_shared<const Placement>(std::move(*placement)) : nullptr;
  auto file = std::make_shared<LabFile>(store_, targets_, std::move(tree), std::move(shared));
  files_[{facts.st_dev, facts.st_ino}] = file;
  constexpr std::size_t kLast = 256;
  last_.push_back(file);
  if (last_.size() > kLast) last_.pop_front();
  return file;
}

void Files::remove(const std::shared_ptr<LabFile>& file, Client client) {
  file->mark_removed(client);
  const std::scoped_lock guard(mutex_);
  std::erase(last_, file);
}

}  // namespace pario::lab
