// Objects of stores ("s3://bucket/key") as files. They are read by range and written as a whole.
//
// The bytes come from an ObjectStore, which the program sets; in Python it is pario.objects. An
// object is read as the version that was opened: a store refuses the bytes of another version.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/base.hpp"
#include "core/file/file.hpp"

namespace pario::file {

/// True for "SCHEME://REST".
bool is_url(std::string_view name);

/// Bytes that are read together with the facts of an object: most indexes of packed files.
inline constexpr std::uint64_t kObjectTail = 256 << 10;

/// An object, as its store describes it.
struct ObjectFacts {
  std::uint64_t size = 0;
  std::int64_t modified = 0;  ///< nanoseconds since 1970; 0: not known
  std::string version = {};   ///< its ETag; empty: the store has none
  std::vector<std::byte> tail = {};
  std::vector<std::byte> head = {};  ///< of keep_head()
};

/// Access to stores. Any thread may call it.
class ObjectStore {
 public:
  virtual ~ObjectStore() = default;
  /// Describes an object, with its last `tail` bytes, or fewer, by one request if possible. ENOENT:
  /// there is none.
  virtual base::Result<ObjectFacts> open(const std::string& url, std::uint64_t tail) = 0;
  /// Reads a range that lies within the object. ESTALE: the object has another version.
  virtual base::Status read(const std::string& url, const ObjectFacts& facts, std::uint64_t offset,
                            std::span<std::byte> out) = 0;
  /// Writes a whole object. It is complete, or not visible.
  virtual base::Status write(const std::string& url, std::span<const std::byte> data) = 0;
  virtual base::Status remove(const std::string& url) = 0;
};
/// Sets the store of this process, at its first call only.
void set_object_store(std::shared_ptr<ObjectStore> store);

/// An open object. Only reads are supported.
class ObjectFile : public File {
 public:
  virtual const ObjectFacts& facts() const = 0;
  /// From now on short reads are served from a block of some MiB, which is read ahead.
  virtual void expect_sequential() = 0;
  /// From now on the blocks of a MiB that are read stay in memory, each requested once, unless a
  /// BlockCache keeps them.
  virtual void keep_blocks() = 0;
};
/// Opens an object; ENOSYS: no store is set.
base::Result<std::unique_ptr<ObjectFile>> open_object(const std::string& url);
/// The facts of an object that is open or can be opened; without its bytes.
base::Result<ObjectFacts> object_facts(const std::string& url);
base::Status write_object(const std::string& url, std::span<const std::byte> data);
base::Status remove_object(const std::string& url);

/// While one exists in the process, each object is opened once, and a missing one is missed once:
/// for work that opens a file several times.
class KeptObjects {
 public:
  KeptObjects();
  ~KeptObjects();
  KeptObjects(const KeptObjects&) = delete;
  KeptObjects& operator=(const KeptObjects&) = delete;
};
/// Opens objects, or misses them, at the same time. Without a KeptObjects it does nothing.
void open_together(std::span<const std::string> urls);
/// Reads the first bytes of an object, for those who open it from now on. Without a KeptObjects it
/// does nothing.
void keep_head(const std::string& url, std::uint64_t bytes);

}  // namespace pario::file
