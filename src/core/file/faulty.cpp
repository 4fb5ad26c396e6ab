// A member that fails on request.
#include <cerrno>
#include <vector>

#include "core/file/member.hpp"
#include "core/file/transfer.hpp"

namespace pario::file {
namespace {

using Decide = std::function<Fault(const char* operation, base::Extent where)>;

std::vector<iovec> first_half(std::span<const iovec> pieces) {
  return first_bytes(pieces, std::max<std::uint64_t>(total_length(pieces) / 2, 1));
}

/// True for the errors of a file system without locks, in contrast to those of a failing one.
bool is_unsupported(const Fault& fault) {
  return fault.kind == Fault::Kind::error &&
         (fault.number == ENOLCK || fault.number == ENOTSUP || fault.number == ENOSYS);
}

class FaultyFile final : public Member {
 public:
  FaultyFile(std::unique_ptr<File> inner, Decide decide)
      : Member(inner->path(), inner->layout()),
        inner_(std::move(inner)),
        decide_(std::move(decide)) {}

  /// Reports no locks if lock() is unsupported.
  Capabilities capabilities() const override {
    Capabilities out = inner_->capabilities();
    out.locks = out.locks && !is_unsupported(decide_("lock", {}));
    return out;
  }
  base::Result<std::uint64_t> size() override {
    base::Status allowed = ask("size", {});
    return allowed.ok() ? inner_->size() : base::Result<std::uint64_t>(std::move(allowed.error()));
  }
  base::Status resize(std::uint64_t size) override {
    return unless_failed("resize", {0, size}, [&] { return inner_->resize(size); });
  }
  base::Status preallocate(std::uint64_t size) override {
    return unless_failed("preallocate", {0, size}, [&] { return inner_->preallocate(size); });
  }
  base::Status sync() override {
    return unless_failed("sync", {}, [&] { return inner_->sync(); });
  }
  base::Status lock(base::Extent where, bool exclusive) override {
    return unless_failed("lock", where, [&] { return inner_->lock(where, exclusive); });
  }
  base::Result<bool> try_lock(base::Extent where, bool exclusive) override {
    base::Status allowed = ask("lock", where);
    return allowed.ok() ? inner_->try_lock(where, exclusive)
                        : base::Result<bool>(std::move(allowed.error()));
  }
  base::Status unlock(base::Extent where) override {
    return unless_failed("unlock", where, [&] { return inner_->unlock(where); });
  }
  base::Status refresh() override {
    return unless_failed("refresh", {}, [&] { return inner_->refresh(); });
  }
  base::Status close() override {
    return unless_failed("close", {}, [&] { return inner_->close(); });
  }
  std::string striping_trouble() const override { return inner_->striping_trouble(); }

 private:
  base::Status ask(const char* operation, base::Extent where) {
    const Fault fault = decide_(operation, where);
    return fault.kind == Fault::Kind::error ? base::Status(error(fault.number, operation, where))
                                            : base::Status{};
  }
  template <class Call>
  base::Status unless_failed(const char* operation, base::Extent where, Call call) {
    base::Status allowed = ask(operation, where);
    return allowed.ok() ? call() : allowed;
  }
  /// `move` gets the pieces to move now, and returns bytes moved or a negative errno.
  template <class Move>
  long attempt(const char* operation, std::uint64_t offset, std::span<const iovec> pieces,
               Move move) {
    const Fault fault = decide_(operation, base::Extent::at(offset, total_length(pieces)));
    if (fault.kind == Fault::Kind::error) return -fault.number;
    if (fault.kind == Fault::Kind::interrupted) return -EINTR;
    std::vector<iovec> now = fault.kind == Fault::Kind::short_transfer
                                 ? first_half(pieces)
                                 : std::vector(pieces.begin(), pieces.end());
    return move(now);
  }
  long attempt_read(std::uint64_t offset, std::span<const iovec> pieces) override {
    return attempt("read", offset, pieces, [&](std::span<iovec> now) {
      return as_attempt(inner_->read_vector(offset, now));
    });
  }
  long attempt_write(std::uint64_t offset, std::span<const iovec> pieces) override {
    return attempt("write", offset, pieces, [&](std::span<iovec> now) {
      const std::uint64_t length = total_length(now);
      return as_attempt(inner_->write_vector(offset, now), length);
    });
  }

  std::unique_ptr<File> inner_;
  Decide decide_;
};

}  // namespace

std::unique_ptr<File> make_faulty(std::unique_ptr<File> inner, Decide decide) {
  return std::make_unique<FaultyFile>(std::move(inner), std::move(decide));
}

}  // namespace pario::file
