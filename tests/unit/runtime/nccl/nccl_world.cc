#include "tests/unit/runtime/nccl/nccl_world.h"

#include <array>

#include "runtime/collective/fabric.h"
#include "tests/support/paths.h"

namespace paceline::nccl {

using ::testing::IsEmpty;

fake_nccl::FakeNccl& fake_library(const std::string& path) {
  const std::array names{path};
  return *reinterpret_cast<fake_nccl::Get>(
      must(must(cuda::SharedObject::open(names)).find(fake_nccl::kGet)))();
}

Gpu::Gpu(int ordinal)
    : context(must(cuda::Context::open(must(cuda::Driver::open(binary_path(PACELINE_FAKE_CUDA))), ordinal))),
      stream(std::make_unique<cuda::Stream>(must(cuda::Stream::create(context)))) {}

NcclTest::NcclTest() {
  // A machine that is busy with other things does not make it give up.
  limits_.leaving = limits_.abort = limits_.revoke = limits_.shrink = std::chrono::seconds(60);
  cuda::fake().reset();
  cuda::fake().control().devices = 16;
  fake_library().reset();
}

NcclTest::~NcclTest() {
  cuda::fake().reset();
  fake_library().reset();
}

void NcclTest::TearDown() {
  ranks_.clear();
  fake_library(library_).release();
  // Threads that were given up end now, and let go of what they hold.
  for (auto& gpu : gpus_) {
    gpu->stream.reset();
    until([&] { return gpu->context.use_count() == 1; });
  }
  gpus_.clear();
  EXPECT_THAT(cuda::fake().problems(), IsEmpty());
  EXPECT_THAT(fake_library(library_).problems(), IsEmpty());
  const fake_cuda::Counts left = cuda::fake().counts();
  EXPECT_EQ(left.allocations + left.streams + left.events + left.contexts, 0U);
}

NcclTest::Made NcclTest::create(int size, const Clock& clock) {
  std::vector<int> ranks;
  for (int r = 0; r < size; ++r) ranks.push_back(r);
  ranks_.clear();
  places_ = ranks;
  return create_from(ranks, clock);
}

NcclTest::Made NcclTest::create_from(const std::vector<int>& ranks, const Clock& clock) {
  const auto library = must(Library::open(library_));
  const auto size = static_cast<int>(ranks.size());
  auto hosts = collective::make_in_process_group(size, Generation{++view_}, clock);
  hosts_.clear();
  std::vector<int> places;
  std::vector<nccl::Setup> setups(ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const auto last = static_cast<std::size_t>(ranks[i]);
    places.push_back(places_[last]);
    while (static_cast<int>(gpus_.size()) <= places.back())
      gpus_.push_back(std::make_unique<Gpu>(static_cast<int>(gpus_.size())));
    hosts_.push_back(hosts[i].get());
    setups[i].library = library;
    setups[i].context = gpus_[static_cast<std::size_t>(places.back())]->context;
    setups[i].host = std::move(hosts[i]);
    setups[i].limits = limits_;
    setups[i].keeps = keeps_;
    setups[i].on_stuck = [this] { ++stuck_; };
    if (last < ranks_.size()) setups[i].parent = std::move(ranks_[last]);
  }
  places_ = places;
  Made made(ranks.size());
  run_ranks(size, [&](int r) {
    const auto i = static_cast<std::size_t>(r);
    made[i] = NcclCommunicator::create(std::move(setups[i]), clock, later(clock));
  });
  return made;
}

void NcclTest::take(Made made) {
  ranks_.clear();
  for (auto& one : made) {
    ASSERT_TRUE(one.ok()) << one.status();
    ranks_.push_back(*std::move(one));
  }
}

void NcclTest::connect(int size, const Clock& clock) {
  take(create(size, clock));
}

void NcclTest::connect_from(const std::vector<int>& ranks, const Clock& clock) {
  take(create_from(ranks, clock));
}

cuda::DeviceBuffer NcclTest::upload(int r, const std::vector<float>& values) {
  cuda::DeviceBuffer buffer = must(cuda::DeviceBuffer::create(gpu(r).context, values.size() * sizeof(float)));
  EXPECT_TRUE(gpu(r).context->enter().ok());
  EXPECT_TRUE(gpu(r).stream->to_device(buffer.address(), std::as_bytes(std::span(values))).ok());
  EXPECT_TRUE(gpu(r).stream->finish(clock_, later(clock_)).ok());
  return buffer;
}

std::vector<float> NcclTest::download(int r, const cuda::DeviceBuffer& from) {
  std::vector<float> values(from.bytes() / sizeof(float));
  EXPECT_TRUE(gpu(r).context->enter().ok());
  EXPECT_TRUE(gpu(r).stream->to_host(std::as_writable_bytes(std::span(values)), from.address()).ok());
  EXPECT_TRUE(gpu(r).stream->finish(clock_, later(clock_)).ok());
  return values;
}

}  // namespace paceline::nccl
