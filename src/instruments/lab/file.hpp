// One file of a lab, shared by all its handles.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "instruments/lab/clock.hpp"
#include "instruments/lab/placement.hpp"
#include "instruments/lab/store.hpp"
#include "instruments/lab/targets.hpp"

namespace pario::lab {

/// An open file. Numbers returned are those of system calls: the bytes moved, or -errno.
/// Thread-safe. Each call returns after the time that the targets need for it.
class LabFile {
 public:
  LabFile(const Store& store, Targets& targets, Descriptor tree,
          std::shared_ptr<const Placement> placement);
  ~LabFile();  ///< deletes the objects if the file was removed

  long write(Client client, std::span<const char> data, std::uint64_t offset, bool append);
  long read(Client client, std::span<char> data, std::uint64_t offset);
  int truncate(Client client, std::uint64_t size);
  /// Makes the file at least `size` bytes long; writes no bytes.
  int grow(std::uint64_t size);
  int punch(base::Extent extent);
  /// Seeks with SEEK_DATA or SEEK_HOLE.
  long seek(std::uint64_t offset, int whence);
  /// Waits until the client's writes are on the targets.
  void wait_for_writes(Client client);

  std::uint64_t size() const;
  /// Returns null before the file has a placement.
  std::shared_ptr<const Placement> placement() const;
  /// Sets the placement of a file that has none or no bytes; deletes its old objects.
  int place(Client client, Placement placement);
  /// Deletes the objects when the last handle is closed.
  void mark_removed(Client client);
  int tree() const { return tree_.number(); }

 private:
  struct Object {
    Descriptor descriptor;
    ObjectLock lock;
    Continuation reads, writes;
  };
  std::vector<Request> requests(Client client, Kind kind, base::Extent extent);
  /// Opens the object of a piece. Returns a descriptor; -1 with errno if the object does not exist
  /// and `create` is false.
  int open(const ObjectPart& piece, bool create);
  std::vector<ObjectPart> pieces(base::Extent extent) const;
  long move(base::Extent extent, char* data, bool writing);
  long move_piece(const ObjectPart& piece, char* data, bool writing);
  Booked book(Client client, Kind kind, base::Extent extent);
  void book_objects(Client client, std::uint64_t size, bool wait);
  void cut(std::uint64_t size);
  void remove_objects();

  const Store& store_;
  Targets& targets_;
  Descriptor tree_;
  std::shared_ptr<const Placement> placement_;
  mutable std::shared_mutex cutting_;  ///< shared while bytes are read or written
  mutable std::mutex mutex_;           ///< protects the members below
  std::map<ObjectName, Object> objects_;
  std::map<Client, Moment> written_;  ///< the time at which a client's writes are on the targets
  std::uint64_t size_ = 0;
  bool removed_ = false;
};

/// The open files, and the latest closed ones, whose lock holders are still recorded.
class Files {
 public:
  Files(const Store& store, Targets& targets) : store_(store), targets_(targets) {}

  /// Returns the one LabFile of a path in the store; null with errno if there is none or it is not
  /// a regular file. Opens the file if necessary.
  std::shared_ptr<LabFile> find_or_open(const std::string& path);
  std::shared_ptr<LabFile> find_or_open(Descriptor tree);
  /// Records that the last name was removed: the objects are deleted when the last handle is
  /// closed.
  void remove(const std::shared_ptr<LabFile>& file, Client client);

 private:
  using Key = std::pair<dev_t, ino_t>;
  const Store& store_;
  Targets& targets_;
  std::mutex mutex_;
  std::map<Key, std::weak_ptr<LabFile>> files_;
  std::deque<std::shared_ptr<LabFile>> last_;
};

}  // namespace pario::lab
