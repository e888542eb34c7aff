#include "runtime/cuda/graph.h"

#include "base/status.h"

namespace paceline::cuda {

absl::StatusOr<Graph> Graph::record(Stream& stream, absl::FunctionRef<absl::Status()> add) {
  const Context& context = stream.context();
  const Driver::Calls& call = context.calls();
  // Of this thread's own calls alone: those of others, for other streams, disturb nothing.
  PL_RETURN_IF_ERROR(
      context.check(call.cuStreamBeginCapture(stream.handle(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                    "cuStreamBeginCapture"));
  const absl::Status added = add();
  CUgraph graph = nullptr;
  const absl::Status ended =
      context.check(call.cuStreamEndCapture(stream.handle(), &graph), "cuStreamEndCapture");
  CUgraphExec handle = nullptr;
  absl::Status made = added.ok() ? ended : added;
  if (made.ok()) made = context.check(call.cuGraphInstantiate(&handle, graph, 0), "cuGraphInstantiate");
  if (graph != nullptr) call.cuGraphDestroy(graph);
  PL_RETURN_IF_ERROR(made);
  return Graph(stream.shared_context(), handle);
}

Graph::~Graph() {
  if (handle_ != nullptr && context_->enter().ok()) context_->calls().cuGraphExecDestroy(handle_);
}

absl::Status Graph::launch(Stream& stream) const {
  return context_->check(context_->calls().cuGraphLaunch(handle_, stream.handle()), "cuGraphLaunch");
}

}  // namespace paceline::cuda
