// Reading and writing.
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "parallel/mpiio/external32.hpp"
#include "parallel/mpiio/guarded.hpp"
#include "parallel/mpiio/implementations.hpp"
#include "parallel/mpiio/library.hpp"
#include "parallel/mpiio/requests.hpp"
#include "parallel/mpiio/view.hpp"

namespace pario::mpiio {
namespace {

using engine::With;
using plan::Direction;

/// The arguments of a data access: (file, [offset,] buffer, count, type, [status or request]).
struct Arguments {
  explicit Arguments(const Call& call)
      : at(call.kind.pointer == Pointer::given ? 2 : 1),
        offset(call.kind.pointer == Pointer::given ? call.offset(1) : 0),
        buffer(call.pointer<std::byte>(at)),
        count(call.count(at + 1)),
        type(call[at + 2]),
        last(call[at + 3]) {}
  int at;
  std::int64_t offset;
  std::byte* buffer;
  std::int64_t count;
  Word type;
  Word last;
};

Outcome check_access(const Call& call, const OpenFile& file) {
  if (call.kind.direction == Direction::read && !file.mode.readable)
    return refuse(k(MPI_ERR_ACCESS), call, file.path + " was opened to be written only");
  if (call.kind.direction == Direction::write && !file.mode.writable)
    return refuse(k(MPI_ERR_READ_ONLY), call, file.path + " was opened to be read only");
  if (file.mode.sequential && call.kind.pointer != Pointer::shared)
    return refuse(k(MPI_ERR_UNSUPPORTED_OPERATION), call,
                  "a file opened with MPI_MODE_SEQUENTIAL has its shared pointer only");
  if (file.split_active && call.kind.collective && call.kind.completion == Completion::split)
    return refuse(k(MPI_ERR_OTHER), call, "a split collective access of this file is under way");
  return {};
}

Outcome check_arguments(const Call& call, const OpenFile& file, const Arguments& arguments) {
  if (arguments.count < 0) return refuse(k(MPI_ERR_COUNT), call, "the count is negative");
  if (lib().handle(arguments.type) == h(MPI_DATATYPE_NULL))
    return refuse(k(MPI_ERR_TYPE), call, "the datatype is MPI_DATATYPE_NULL");
  if (arguments.offset < 0) return refuse(k(MPI_ERR_ARG), call, "the offset is negative");
  if (arguments.offset >
      std::numeric_limits<std::int64_t>::max() / static_cast<std::int64_t>(file.view.etype_size()))
    return refuse(k(MPI_ERR_ARG), call, "the offset lies behind the end of the largest file");
  return check_access(call, file);
}

/// True if a null buffer cannot be MPI_BOTTOM, whose types have addresses as displacements.
bool is_missing(const std::byte* buffer, std::int64_t count, const pattern::TypeMap& type) {
  constexpr std::int64_t kFirstPage = 4096;
  return buffer == nullptr && count > 0 && type.size() > 0 && type.true_lower() < kFirstPage;
}

/// Lets the individual pointer stop at the end of the file, after a read of `moved` bytes from
/// `position` on: at the next whole elementary type.
void stop_at_end(OpenFile& file, std::uint64_t position, std::uint64_t moved) {
  const std::lock_guard lock(file.mutex);
  file.position = position + base::round_up(moved, file.view.etype_size());
}

/// Keeps a datatype for the end of a started access: the program may free its own handle before.
std::shared_ptr<const Word> keep_type(Word type) {
  return {new Word(retain_type(type)), [](const Word* kept) {
            release_type(*kept);
            delete kept;
          }};
}

/// One data access, from its arguments to the call of the engine.
class Transfer {
 public:
  Transfer(const Call& call, OpenFile& file, const Arguments& arguments)
      : call_(call), file_(file), arguments_(arguments) {}

  /// Computes layouts and sizes, and packs the bytes if the file is not native.
  Outcome prepare();
  /// Computes the offset and moves file pointers. Collective for ordered access.
  Outcome find_position();
  /// Sets the error with which this rank takes part in find_position(), without data.
  void set_failed(Outcome outcome) {
    failed_ = std::move(outcome);
    access_.bytes = 0;
  }
  /// Checks the last byte, after find_position().
  void check_end();
  const Outcome& error() const { return failed_; }
  /// Collective, after find_position(): shares this rank's error with all ranks.
  void refuse_all();

  base::Result<std::uint64_t> run();
  Started start();
  /// Computes the bytes of the program's memory for `moved` bytes of the file, and converts those
  /// that were read.
  Outcome finish(std::uint64_t moved, std::uint64_t& bytes);

 private:
  Outcome pack();
  base::Result<std::uint64_t> move();
  std::uint64_t finish_partial_instance(std::int64_t instance, std::uint64_t moved);
  bool converts_read() const {
    return call_.kind.direction == Direction::read && !representation_->native();
  }
  With with() const { return call_.kind.collective ? With::together : With::alone; }

  Call call_;  // its words are valid only during the call
  OpenFile& file_;
  Arguments arguments_;
  pattern::Access access_ = {};
  const Representation* representation_ = nullptr;
  std::shared_ptr<std::byte[]> packed_;
  std::uint64_t memory_size_ = 0, file_size_ = 0;  // of one instance of the type
  Outcome failed_ = {};
};

Outcome Transfer::prepare() {
  std::optional<pattern::TypeMap> memory = layout_if_committed(arguments_.type);
  if (!memory) return refuse(k(MPI_ERR_TYPE), call_, "the datatype is not committed");
  access_.memory = std::move(*memory);
  access_.buffer = arguments_.buffer;
  if (is_missing(arguments_.buffer, arguments_.count, access_.memory))
    return refuse(k(MPI_ERR_BUFFER), call_, "the buffer is null");
  memory_size_ = file_size_ = access_.memory.size();
  const std::lock_guard lock(file_.mutex);
  access_.view = file_.view.bytes;
  representation_ = file_.view.representation;
  if (!representation_->native()) file_size_ = size_in_file(arguments_.type, *representation_);
  if (__builtin_mul_overflow(file_size_, arguments_.count, &access_.bytes) ||
      static_cast<std::int64_t>(access_.bytes) < 0)
    return refuse(k(MPI_ERR_COUNT), call_, "the data is larger than the largest file");
  if (access_.bytes % access_.view.etype_size != 0)
    return refuse(k(MPI_ERR_IO), call_, "only whole elementary types of the view can be accessed");
  if (access_.bytes != 0 && access_.view.filetype.size() == 0)
    return refuse(k(MPI_ERR_IO), call_, "the view has no data");
  return representation_->native() ? Outcome{} : pack();
}

Outcome Transfer::pack() {
  packed_ = std::shared_ptr<std::byte[]>(new (std::nothrow) std::byte[access_.bytes + 1]);
  if (!packed_) return refuse(k(MPI_ERR_NO_MEM), call_, "no memory to convert the data");
  access_.memory = pattern::TypeMap::block(1);
  access_.buffer = packed_.get();
  if (call_.kind.direction == Direction::read) return {};
  if (encode(*representation_, arguments_.buffer, arguments_.count, arguments_.type, packed_.get(),
             access_.bytes))
    return {};
  return refuse(k(MPI_ERR_CONVERSION), call_,
                "the data cannot be converted to " + representation_->name);
}

Outcome Transfer::find_position() {
  switch (call_.kind.pointer) {
    case Pointer::given:
      access_.position = static_cast<std::uint64_t>(arguments_.offset) * access_.view.etype_size;
      return {};
    case Pointer::individual: {
      const std::lock_guard lock(file_.mutex);
      access_.position = file_.position;
      if (failed_.ok()) file_.position += access_.bytes;
      return {};
    }
    case Pointer::shared: {
      const auto position = call_.kind.collective
                                ? file_.shared->pointer().order(access_.bytes, call_.name)
                                : file_.shared->pointer().advance(access_.bytes);
      if (!position.ok()) return outcome_of(position.error());
      access_.position = *position;
      return {};
    }
  }
  return {};
}

void Transfer::check_end() {
  if (access_.bytes == 0 || can_reach(access_.view, access_.position + access_.bytes - 1)) return;
  set_failed(refuse(k(MPI_ERR_ARG), call_, "the data lies behind the end of the largest file"));
}

void Transfer::refuse_all() {
  const base::Error error = error_of(failed_, call_);
  if (call_.kind.completion == Completion::blocking)
    file_.shared->refuse(call_.kind.direction, error, call_.name);
  else
    file_.shared->start_refusal(call_.kind.direction, error, call_.name);
  if (call_.kind.completion == Completion::request)
    lib().set_handle_at(arguments_.last, 0, h(MPI_REQUEST_NULL));
}

/// Moves the bytes; one run of the file and of memory takes fewer steps.
base::Result<std::uint64_t> Transfer::move() {
  const Direction direction = call_.kind.direction;
  base::Extent run = {};
  if (access_.memory.contiguous()) run = access_.view.find_run(access_.position, access_.bytes);
  if (!run.empty())
    return file_.shared->move_run(direction, run, access_.buffer, with(), call_.name);
  return direction == Direction::write ? file_.shared->write(access_, with(), call_.name)
                                       : file_.shared->read(access_, with(), call_.name);
}

base::Result<std::uint64_t> Transfer::run() {
  auto moved = move();
  if (call_.kind.direction == Direction::write) return moved;
  if (moved.ok() && call_.kind.pointer == Pointer::individual && *moved < access_.bytes)
    stop_at_end(file_, access_.position, *moved);
  return moved;
}

Started Transfer::start() {
  auto operation = file_.shared->start(call_.kind.direction, access_, with(), call_.name);
  Transfer rest = *this;
  std::shared_ptr<const Word> type;
  if (converts_read()) {
    type = keep_type(arguments_.type);
    rest.arguments_.type = *type;
  }
  return {std::move(operation), [rest, type](std::uint64_t moved, std::uint64_t& bytes) mutable {
            return rest.finish(moved, bytes);
          }};
}

Outcome Transfer::finish(std::uint64_t moved, std::uint64_t& bytes) {
  bytes = moved;
  if (representation_ == nullptr || representation_->native()) return {};
  if (converts_read() && representation_->kind == Representation::Kind::external32) {
    bytes =
        from_external(arguments_.buffer, arguments_.count, arguments_.type, packed_.get(), moved);
    return {};
  }
  const std::int64_t whole = file_size_ == 0 ? 0 : static_cast<std::int64_t>(moved / file_size_);
  const std::uint64_t in_whole = static_cast<std::uint64_t>(whole) * file_size_;
  if (converts_read() && whole > 0 &&
      !decode(*representation_, arguments_.buffer, whole, arguments_.type, packed_.get(), in_whole))
    return refuse(k(MPI_ERR_CONVERSION), call_,
                  "the data cannot be converted from " + representation_->name);
  bytes = static_cast<std::uint64_t>(whole) * memory_size_ +
          (moved > in_whole ? finish_partial_instance(whole, moved - in_whole) : 0);
  return {};
}

/// Handles a file that ended within an instance. Only whole instances can be converted: a temporary
/// instance is converted, and the bytes read are copied from it. If values have other sizes in the
/// file than in memory, their number is unknown, and the whole instance is omitted.
std::uint64_t Transfer::finish_partial_instance(std::int64_t instance, std::uint64_t moved) {
  if (memory_size_ != file_size_) return 0;
  const pattern::TypeMap memory = layout_of(arguments_.type);
  std::vector<std::byte> image(static_cast<std::size_t>(memory.true_extent())), data(moved);
  std::byte* const packed = packed_.get() + static_cast<std::uint64_t>(instance) * file_size_;
  std::memset(packed + moved, 0, file_size_ - moved);
  std::byte* const origin = image.data() - memory.true_lower();
  if (!decode(*representation_, origin, 1, arguments_.type, packed, file_size_)) return 0;
  pattern::Walker({.buffer = origin, .memory = memory, .bytes = moved})
      .gather({0, moved}, data.data(), {});
  std::byte* const to = arguments_.buffer + instance * memory.extent();
  pattern::Walker({.buffer = to, .memory = memory, .bytes = moved})
      .scatter({0, moved}, data.data());
  return moved;
}

Outcome run_blocking(Transfer& transfer, const Arguments& arguments) {
  const auto moved = transfer.run();
  if (!moved.ok()) return outcome_of(moved.error());
  std::uint64_t bytes = 0;
  const Outcome outcome = transfer.finish(*moved, bytes);
  if (outcome.ok()) set_status(arguments.last, bytes);
  return outcome;
}

Outcome begin_split(const Call& call, OpenFile& file, Started started) {
  file.split = std::move(started);
  file.split_kind = call.kind;
  file.split_active = true;
  return {};
}

Outcome carry_out(const Call& call, OpenFile& file, const Arguments& arguments) {
  Transfer transfer(call, file, arguments);
  Outcome outcome = check_arguments(call, file, arguments);
  if (outcome.ok()) outcome = transfer.prepare();
  if (!outcome.ok() && !call.kind.collective) return outcome;
  if (!outcome.ok()) transfer.set_failed(outcome);
  outcome = transfer.find_position();
  if (!outcome.ok()) return outcome;
  transfer.check_end();
  if (!transfer.error().ok()) {
    if (call.kind.collective) transfer.refuse_all();
    return transfer.error();
  }
  switch (call.kind.completion) {
    case Completion::blocking:
      return run_blocking(transfer, arguments);
    case Completion::request:
      return make_request(call, file.shared_from_this(), transfer.start(), arguments.last);
    case Completion::split:
      return begin_split(call, file, transfer.start());
  }
  return {};
}

/// True if the arguments and the file are right beyond doubt: carry_out() finds the errors.
bool is_plain(const Call& call, const OpenFile& file, const Arguments& arguments) {
  const bool may = call.kind.direction == Direction::read ? file.mode.readable : file.mode.writable;
  return call.kind.completion == Completion::blocking && call.kind.pointer != Pointer::shared &&
         may && !file.mode.sequential && arguments.buffer != nullptr && arguments.count > 0 &&
         arguments.offset >= 0 && lib().handle(arguments.type) != h(MPI_DATATYPE_NULL);
}

/// Returns the bytes of an access of contiguous memory; 0: its memory is not contiguous, or not
/// known to be.
std::uint64_t contiguous_bytes(const Arguments& arguments) {
  const pattern::TypeMap* const memory = known_layout(arguments.type);
  std::uint64_t bytes = 0;
  if (memory == nullptr || !memory->contiguous() ||
      __builtin_mul_overflow(memory->size(), arguments.count, &bytes))
    return 0;
  return bytes;
}

/// The run of the file that an access moves, and the data byte of the view at its begin.
struct Found {
  base::Extent run = {};
  std::uint64_t position = 0;
};

/// Finds the run of an access of `bytes` bytes, and moves the individual file pointer. An empty
/// run: the access has to be looked at more closely. An access at a given offset needs no lock: the
/// view changes in collective calls only.
Found find_run(const Call& call, OpenFile& file, const Arguments& arguments, std::uint64_t bytes) {
  const bool given = call.kind.pointer == Pointer::given;
  std::unique_lock lock(file.mutex, std::defer_lock);
  if (!given) lock.lock();
  const std::uint64_t etype_size = file.view.etype_size();
  if (!file.view.representation->native() || bytes % etype_size != 0) return {};
  std::uint64_t position = given ? static_cast<std::uint64_t>(arguments.offset) : file.position;
  if (given && __builtin_mul_overflow(position, etype_size, &position)) return {};
  const base::Extent run = file.view.bytes.find_run(position, bytes);
  if (!given && !run.empty()) file.position = position + bytes;
  return {run, position};
}

/// Carries out a blocking access of one run of bytes in the file and in memory, and returns its
/// result. Nothing: the access is another one.
std::optional<Word> carry_out_run(const Call& call, OpenFile& file, const Arguments& arguments) {
  if (!is_plain(call, file, arguments)) return std::nullopt;
  const auto [run, position] = find_run(call, file, arguments, contiguous_bytes(arguments));
  if (run.empty()) return std::nullopt;
  const auto moved =
      file.shared->move_run(call.kind.direction, run, arguments.buffer,
                            call.kind.collective ? With::together : With::alone, call.name);
  if (!moved.ok()) return raise(&file, outcome_of(moved.error()));
  if (*moved < run.length() && call.kind.pointer == Pointer::individual)
    stop_at_end(file, position, *moved);
  set_status(arguments.last, *moved);
  return Word{0};
}

}  // namespace

Word transfer(const Call& call) {
  OpenFile* const file = find_in_use(call[0]);
  if (!file) return raise(nullptr, bad_handle(call));
  const Arguments arguments(call);
  const std::optional<Word> result = carry_out_run(call, *file, arguments);
  return result ? *result : raise(file, carry_out(call, *file, arguments));
}

Word end_transfer(const Call& call) {
  return on_file(call, [&](OpenFile& file) -> Outcome {
    if (!file.split_active || !(file.split_kind == call.kind))
      return refuse(k(MPI_ERR_OTHER), call, "this split collective access has not begun");
    wait_for(file, *file.split.operation);
    std::uint64_t bytes = 0;
    const Outcome outcome = finish(file.split, bytes);
    file.split = {};
    file.split_active = false;
    if (outcome.ok()) set_status(call[2], bytes);
    return outcome;
  });
}

}  // namespace pario::mpiio
