#include "grpc_group.h"

#include <grpcpp/generic/async_generic_service.h>

#include <atomic>
#include <cstring>
#include <future>
#include <mutex>
#include <utility>

#include "base/check.h"

namespace bench {

namespace {

void copy_out(grpc::ByteBuffer& buffer, std::vector<char>& memory) {
  std::vector<grpc::Slice> slices;
  PL_CHECK(buffer.Dump(&slices).ok(), "a whole message");
  std::size_t at = 0;
  for (const grpc::Slice& slice : slices) {
    PL_CHECK(at + slice.size() <= memory.size(), "as long as it should be");
    std::memcpy(memory.data() + at, slice.begin(), slice.size());
    at += slice.size();
  }
}

}  // namespace

grpc::ByteBuffer view(const std::vector<char>& bytes) {
  const grpc::Slice slice(bytes.data(), bytes.size(), grpc::Slice::STATIC_SLICE);
  return grpc::ByteBuffer(&slice, 1);
}

// Memory for what comes, used again by the next call: a server has it for as long as its workers train.
class Slots {
 public:
  explicit Slots(std::size_t bytes) : bytes_(bytes) {}
  std::vector<char> take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return std::vector<char>(bytes_);
    std::vector<char> slot = std::move(free_.back());
    free_.pop_back();
    return slot;
  }
  void give_back(std::vector<char> slot) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(slot));
  }

 private:
  const std::size_t bytes_;
  std::mutex mutex_;
  std::vector<std::vector<char>> free_;  // guarded by mutex_
};

class GrpcServer::Answer final : public grpc::ServerGenericBidiReactor {
 public:
  Answer(Slots& slots, const std::vector<char>& answer)
      : slots_(slots), slot_(slots.take()), answer_(view(answer)) {
    StartRead(&request_);
  }
  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status(grpc::StatusCode::INTERNAL, "no request"));
    copy_out(request_, slot_);
    StartWriteAndFinish(&answer_, grpc::WriteOptions(), grpc::Status::OK);
  }
  void OnDone() override {
    slots_.give_back(std::move(slot_));
    delete this;
  }

 private:
  Slots& slots_;
  std::vector<char> slot_;
  grpc::ByteBuffer request_, answer_;
};

class GrpcServer::Service final : public grpc::CallbackGenericService {
 public:
  Service(std::size_t largest, const std::map<std::string, std::size_t>& answers) : slots_(largest) {
    for (const auto& [method, bytes] : answers) answers_[method] = std::vector<char>(bytes, 1);
  }

 private:
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    return new Answer(slots_, answers_.at(context->method()));
  }
  Slots slots_;
  std::map<std::string, std::vector<char>> answers_;
};

GrpcServer::GrpcServer(std::size_t largest, const std::map<std::string, std::size_t>& answers)
    : service_(std::make_unique<Service>(largest, answers)) {
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(-1);
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
  builder.RegisterCallbackGenericService(service_.get());
  server_ = builder.BuildAndStart();
  PL_CHECK(server_ != nullptr, "a gRPC server");
}

GrpcServer::~GrpcServer() {
  server_.reset();
}

GrpcWorker::GrpcWorker(Meeting& meeting, int servers, std::size_t largest) {
  const std::vector<std::string> ports = meeting.exchange("");
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  for (std::size_t s = ports.size() - static_cast<std::size_t>(servers); s < ports.size(); ++s) {
    const std::string at = "127.0.0.1:" + std::string(ports[s].c_str());
    stubs_.push_back(std::make_unique<grpc::GenericStub>(
        grpc::CreateCustomChannel(at, grpc::InsecureChannelCredentials(), arguments)));
    answers_.emplace_back(largest);
  }
}

void GrpcWorker::call(const char* method, std::vector<grpc::ByteBuffer> requests) {
  std::vector<grpc::ClientContext> contexts(stubs_.size());
  std::vector<grpc::ByteBuffer> answers(stubs_.size());
  std::atomic<std::size_t> left{stubs_.size()};
  std::promise<void> done;
  for (std::size_t s = 0; s < stubs_.size(); ++s) {
    stubs_[s]->UnaryCall(&contexts[s], method, {}, &requests[s], &answers[s],
                         [&, s](const grpc::Status& status) {
                           PL_CHECK(status.ok(), "an answer of a gRPC server");
                           copy_out(answers[s], answers_[s]);
                           if (left.fetch_sub(1) == 1) done.set_value();
                         });
  }
  done.get_future().wait();
}

}  // namespace bench
