// One file of a lab that somebody uses, shared by all who have it open.
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

#include "lab/clock.hpp"
#include "lab/placement.hpp"
#include "lab/store.hpp"
#include "lab/targets.hpp"

namespace pario::lab {

/// Numbers returned are those of system calls: what was done, or -errno. Threads may use a file at the same time. Each call returns when
/// the targets have had the time they need for it.
class File {
 public:
  File(const Store& store, Targets& targets, Descriptor tree, std::shared_ptr<const Placement> placement);
  ~File();  ///< with the objects, if the file was removed

  long write(Client client, std::span<const char> data, std::uint64_t offset, bool append);
  long read(Client client, std::span<char> data, std::uint64_t offset);
  int truncate(Client client, std::uint64_t size);
  /// At least so large from now on; bytes are not written.
  int grow(std::uint64_t size);
  int punch(base::Extent extent);
  /// SEEK_DATA and SEEK_HOLE.
  long seek(std::uint64_t offset, int whence);
  /// Waits until what the client has written is on the targets.
  void settle(Client client);

  std::uint64_t size() const;
  /// Null: it has none yet.
  std::shared_ptr<const Placement> placement() const;
  /// Of a file that has none, or no bytes: what of it there was goes.
  int place(Client client, Placement placement);
  /// The objects go when nobody uses it.
  void removed(Client client);
  int tree() const { return tree_.number(); }

 private:
  struct Object {
    Descriptor descriptor;
    ObjectLock lock;
    Continuation reads, writes;
  };
  std::vector<Request> requests(Client client, Kind kind, base::Extent extent);
  /// The descriptor; -1 with errno where there is no such object and none is to be made.
  int open(const Piece& piece, bool create);
  std::vector<Piece> pieces(base::Extent extent) const;
  long move(base::Extent extent, char* data, bool writing);
  long move_piece(const Piece& piece, char* data, bool writing);
  Booked book(Client client, Kind kind, base::Extent extent);
  void book_objects(Client client, std::uint64_t size, bool wait);
  void cut(std::uint64_t size);
  void remove_objects();

  const Store& store_;
  Targets& targets_;
  Descriptor tree_;
  std::shared_ptr<const Placement> placement_;
  mutable std::shared_mutex cutting_;  ///< shared by those who read and write
  mutable std::mutex mutex_;           ///< of what follows
  std::map<ObjectName, Object> objects_;
  std::map<Client, Moment> written_;  ///< when what a client wrote is on the targets
  std::uint64_t size_ = 0;
  bool removed_ = false;
};

/// The files that somebody uses, and those used last: who holds the locks of their objects is still known.
class Files {
 public:
  Files(const Store& store, Targets& targets) : store_(store), targets_(targets) {}

  /// The one file of a name of room store; null, with errno: there is none, or it is no file.
  std::shared_ptr<File> use(const std::string& path);
  std::shared_ptr<File> use(Descriptor tree);
  /// Its last name is gone: its objects go when nobody uses it.
  void remove(const std::shared_ptr<File>& file, Client client);

 private:
  using Key = std::pair<dev_t, ino_t>;
  const Store& store_;
  Targets& targets_;
  std::mutex mutex_;
  std::map<Key, std::weak_ptr<File>> files_;
  std::deque<std::shared_ptr<File>> last_;
};

void sleep_until(Moment moment);

}  // namespace pario::lab
