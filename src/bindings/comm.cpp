// Ranks of another library (mpi4py, torch.distributed) as a Comm.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings/bindings.hpp"
#include "bindings/python_calls.hpp"
#include "bindings/shared_file.hpp"
#include "core/comm/callback.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace pario::bindings {
namespace {

constexpr double kForever = 1e9;  // seconds; the largest time-out
constexpr double kNoTimeOut = 0;

[[noreturn]] void raise_error(const base::Error& error) {
  if (error.detail.empty()) raise_os_error(error);
  raise_os_error(error.number, error.detail);
}

base::Error no_memory() {
  return {.number = ENOMEM,
          .operation = "open",
          .detail = "cannot open: no memory to share between ranks"};
}

std::uint64_t nanoseconds(double seconds) {
  return static_cast<std::uint64_t>(std::clamp(seconds, 0.0, kForever) * 1e9);
}

std::chrono::milliseconds milliseconds(double seconds) {
  if (seconds == kNoTimeOut) return {};
  return std::chrono::milliseconds(
      std::max(std::int64_t{1}, static_cast<std::int64_t>(std::min(seconds, kForever) * 1e3)));
}

/// Runs signal handlers, then `check`, which raises a postponed interrupt.
base::Status look(const nb::callable& check) {
  const base::Status status = run_signal_handlers();
  return status ? with_python([&] { call(check); }) : status;
}

std::vector<std::byte> copy_bytes(nb::handle data) {
  Py_buffer view;
  if (PyObject_GetBuffer(data.ptr(), &view, PyBUF_SIMPLE) != 0) throw nb::python_error();
  const auto* first = static_cast<const std::byte*>(view.buf);
  std::vector<std::byte> bytes(first, first + view.len);
  PyBuffer_Release(&view);
  return bytes;
}

class PythonTransport : public comm::Transport {
 public:
  PythonTransport(int rank, int size, nb::callable send, nb::callable receive, nb::object wait)
      : rank_(rank),
        size_(size),
        send_(std::move(send)),
        receive_(std::move(receive)),
        wait_(std::move(wait)) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  base::Status send(int to, std::span<const std::byte> message) override {
    return with_python([&] { call(send_, to, nb::bytes(message.data(), message.size())); });
  }
  base::Result<std::optional<comm::Message>> receive() override {
    std::optional<comm::Message> message;
    base::Status status = with_python([&] {
      const nb::object received = call(receive_);
      if (received.is_none()) return;
      message = comm::Message{nb::cast<int>(received[0]), copy_bytes(received[1])};
    });
    if (!status) return status.error();
    return message;
  }
  void pause(std::uint64_t waited_ns, std::uint64_t longest_ns) override {
    if (!has_wait_) return comm::sleep_for_share(waited_ns);
    static_cast<void>(with_python([&] { call(wait_, static_cast<double>(longest_ns) * 1e-9); }));
  }

 private:
  int rank_, size_;
  nb::callable send_, receive_;
  nb::object wait_;
  bool has_wait_ = !wait_.is_none();
};

/// Ranks that exchange messages in channels, and share memory once they are introduced.
class Comm {
 public:
  Comm(int rank, int size, nb::callable send, nb::callable receive, nb::object wait)
      : router_(std::make_shared<comm::Router>(std::make_shared<PythonTransport>(
            rank, size, std::move(send), std::move(receive), std::move(wait)))),
        comm_(comm::make_callback(router_)),
        owner_(::getpid()) {}
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;
  /// In the child of a fork the connections to other hosts are the parent's: they stay open.
  ~Comm() {
    if (::getpid() == owner_) return;
    for (const auto& ranks : {comm_, files_, local_})
      static_cast<void>(new std::shared_ptr<comm::Comm>(ranks));
  }

  int rank() const { return router_->rank(); }
  int size() const { return router_->size(); }
  int channel() { return ++channels_; }
  std::vector<int> nodes() const { return comm_->topology().node_of; }

  void send(int to, int channel, const nb::bytes& data) {
    const std::span bytes(static_cast<const std::byte*>(data.data()), data.size());
    const base::Status status =
        without_gil([&] { return router_->send_message(to, channel, bytes); });
    if (!status) raise_error(status.error());
  }

  nb::object receive(int channel, int source, double begin, double patience,
                     const nb::callable& check) {
    const comm::Router::Wait wait{.channel = channel,
                                  .from = source,
                                  .begin_ns = nanoseconds(begin),
                                  .patience_ns = nanoseconds(patience),
                                  .look = [&] { return look(check); }};
    const auto received = without_gil([&] { return router_->receive_message(*comm_, wait); });
    if (!received.ok()) raise_error(received.error());
    if (!*received) return nb::none();
    const comm::Message& message = **received;
    return nb::make_tuple(message.from, nb::bytes(message.data.data(), message.data.size()));
  }

  void keep_alive(double interval) {
    without_gil([&] {
      for (const auto& ranks : {comm_, files_, local_})
        if (ranks) ranks->keep_alive(nanoseconds(interval));
      return 0;
    });
  }

  void introduce(const std::string& label, double patience, const nb::callable& check) {
    const Waiting waiting(*comm_, patience, check);
    auto made = without_gil(
        [&] { return comm::introduce(router_, *comm_, base::xxh64(label), waiting.patience()); });
    if (!made.ok()) raise_error(made.error());
    comm_ = *made;
    const Waiting introduced(*comm_, patience, check);
    without_gil([&] {
      files_ = comm_->duplicate(introduced.patience());
      local_ = comm::make_local(comm_, introduced.patience());
      return 0;
    });
    if (comm_->has_failed()) raise_error(comm_->failure().error());
  }

  bool can_open() const {
    return !(files_ && files_->has_failed()) && !(local_ && local_->has_failed());
  }

  /// Collective over the ranks of the node, or of all nodes. Without Python's signal handlers. The
  /// files have Comms of their own: a wait that ends without a rank fails that Comm alone. It stays
  /// so, because no rank could wait for the others to make a new one.
  nb::object open(const nb::bytes& path, bool writes, bool node, double patience, int opened) {
    if (!files_) files_ = without_gil([&] { return comm_->duplicate(); });
    const std::shared_ptr<comm::Comm>& ranks = node ? local_ : files_;
    if (!ranks) raise_error(comm_->has_failed() ? comm_->failure().error() : no_memory());
    if (ranks->has_failed()) raise_error(ranks->failure().error());
    // The ranks of a node read together where their parts overlap, or are in short runs.
    const bool buffered = node && !writes;
    return open_shared_file(ranks, text_of(path), writes, patience, opened, buffered);
  }

  /// A wait with a Watchdog that also runs Python's signal handlers.
  class Waiting {
   public:
    Waiting(comm::Comm& comm, double patience, nb::callable check)
        : watchdog_(comm,
                    {.give_up = milliseconds(patience),
                     .interrupt = [check = std::move(check)] { return look(check); }},
                    {path_, "", nullptr}) {}
    comm::Patience patience() const { return watchdog_.patience(); }

   private:
    std::string path_;
    mutable comm::Watchdog watchdog_;
  };

 private:
  std::shared_ptr<comm::Router> router_;
  std::shared_ptr<comm::Comm> comm_;
  std::shared_ptr<comm::Comm> files_, local_;  // of open(); null before introduce()
  std::atomic<int> channels_{0};
  pid_t owner_;
};

}  // namespace

void add_comm(nb::module_& module) {
  LockedClass<Comm>(module, "Comm")
      .def(nb::init<int, int, nb::callable, nb::callable, nb::object>(), "rank"_a, "size"_a,
           "send"_a, "receive"_a, "wait"_a = nb::none())
      .def_prop_ro("rank", &Comm::rank)
      .def_prop_ro("size", &Comm::size)
      .def_prop_ro("nodes", &Comm::nodes)
      .def("channel", &Comm::channel)
      .def("send", &Comm::send, "to"_a, "channel"_a, "data"_a)
      .def("receive", &Comm::receive, "channel"_a, "source"_a, "begin"_a, "patience"_a, "check"_a)
      .def("keep_alive", &Comm::keep_alive, "interval"_a)
      .def("introduce", &Comm::introduce, "label"_a, "patience"_a, "check"_a)
      .def_prop_ro("can_open", &Comm::can_open)
      .def("open", &Comm::open, "path"_a, "writes"_a, "node"_a, "patience"_a, "opened"_a);
  module.def(
      "open_alone",
      [](const nb::bytes& path, bool writes) {
        return open_shared_file(comm::make_self(), text_of(path), writes, kForever);
      },
      "path"_a, "writes"_a);
}

}  // namespace pario::bindings
