// bench_allreduce_gloo RANK RANKS FOLDER SIZE...: gloo's default all-reduce over TCP; ranks meet through
// files in FOLDER.

#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include "measure.h"

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const int rank = std::atoi(argv[1]), ranks = std::atoi(argv[2]);
  gloo::rendezvous::FileStore store(argv[3]);
  gloo::transport::tcp::attr attributes;
  attributes.hostname = "127.0.0.1";
  auto device = gloo::transport::tcp::CreateDevice(attributes);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
  context->connectFullMesh(store, device);
  measure::run(
      measure::parse_sizes(4, argc, argv), rank == 0, measure::pages,
      [&](float* data, std::size_t count) {
        gloo::AllreduceOptions options(context);
        options.setOutput(data, count);
        options.setReduceFunction(
            static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&gloo::sum<float>));
        gloo::allreduce(options);
      },
      [&] {
        gloo::BarrierOptions options(context);
        gloo::barrier(options);
      });
  return 0;
}
