// Captures and graphs.

#include <thread>

#include "tests/support/fake_cuda/state.h"

using namespace paceline::fake_cuda;  // NOLINT: this file is the library of that name

CUresult paceline::fake_cuda::unsafe_in_capture() {
  bool refused = false;
  for (const auto& [stream, capture] : state().captures) {
    const bool of_this_thread = capture.by == std::this_thread::get_id();
    if (capture.mode == CU_STREAM_CAPTURE_MODE_RELAXED ||
        (capture.mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL && !of_this_thread))
      continue;
    state().streams.spoil(stream);
    refused = true;
  }
  return refused ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

EXPORTED CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode) {
  BEGIN_CALL(asked_in_context);
  State& s = state();
  const auto number = id<StreamId>(stream);
  if (!s.streams.has(number)) return CUDA_ERROR_INVALID_HANDLE;
  if (s.streams.captures(number)) return CUDA_ERROR_ILLEGAL_STATE;
  s.streams.begin_capture(number);
  s.captures[number] = {std::this_thread::get_id(), mode};
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  BEGIN_CALL(asked_in_context);
  State& s = state();
  const auto number = id<StreamId>(stream);
  *graph = nullptr;
  if (!s.streams.has(number)) return CUDA_ERROR_INVALID_HANDLE;
  if (!s.streams.captures(number)) return CUDA_ERROR_ILLEGAL_STATE;
  const State::Capture capture = s.captures.at(number);
  if (capture.mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture.by != std::this_thread::get_id())
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  s.captures.erase(number);
  Streams::Graph captured = s.streams.end_capture(number);
  if (captured == nullptr) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  *graph = s.handle<CUgraph>();
  s.graphs[*graph] = std::move(captured);
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuGraphInstantiate(CUgraphExec* executable, CUgraph graph, unsigned long long flags) {
  BEGIN_CALL(asked_in_context);
  State& s = state();
  const auto found = s.graphs.find(graph);
  if (found == s.graphs.end() || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  *executable = s.handle<CUgraphExec>();
  s.executable_graphs[*executable] = found->second;
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream) {
  BEGIN_CALL(asked_in_context);
  State& s = state();
  const auto found = s.executable_graphs.find(executable);
  const auto number = id<StreamId>(stream);
  if (found == s.executable_graphs.end() || !s.streams.has(number)) return CUDA_ERROR_INVALID_VALUE;
  if (s.streams.captures(number)) {
    s.streams.spoil(number);
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  s.streams.add_graph(number, found->second);
  return CUDA_SUCCESS;
}
// What is under way of it goes on.
EXPORTED CUresult cuGraphExecDestroy(CUgraphExec executable) {
  BEGIN_CALL(asked_in_context);
  return state().executable_graphs.erase(executable) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
EXPORTED CUresult cuGraphDestroy(CUgraph graph) {
  BEGIN_CALL(asked_in_context);
  return state().graphs.erase(graph) == 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
