// Streams and events.

#include <algorithm>
#include <thread>

#include "tests/support/fake_cuda/state.h"

using namespace paceline::fake_cuda;  // NOLINT: this file is the library of that name

namespace {

bool has(CUstream stream) {
  return state().streams.has(id<StreamId>(stream));
}
bool has(CUevent event) {
  return state().streams.has_event(id<EventId>(event));
}
CUresult spoiled(CUstream stream, CUresult result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) {
  state().streams.spoil(id<StreamId>(stream));
  return result;
}

}  // namespace

void paceline::fake_cuda::finish(StreamId stream, std::unique_lock<std::mutex>& held) {
  while (state().streams.has(stream) && !state().streams.finish(stream)) {
    held.unlock();
    std::this_thread::yield();
    held.lock();
  }
}

EXPORTED CUresult cuStreamCreate(CUstream* stream, unsigned) {
  BEGIN_CALL(asked_in_context);
  *stream = reinterpret_cast<CUstream>(state().streams.create(0));
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  BEGIN_CALL(asked_in_context);
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = kGreatestPriority;
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned, int priority) {
  BEGIN_CALL(asked_in_context);
  *stream = reinterpret_cast<CUstream>(state().streams.create(std::clamp(priority, kGreatestPriority, 0)));
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuStreamDestroy(CUstream stream) {
  BEGIN_CALL(asked_in_context);
  state().captures.erase(id<StreamId>(stream));
  return state().streams.destroy(id<StreamId>(stream)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
EXPORTED CUresult cuStreamSynchronize(CUstream stream) {
  BEGIN_CALL(asked_in_context);
  if (!has(stream)) return CUDA_ERROR_INVALID_HANDLE;
  REFUSE_IN_CAPTURE();
  if (state().streams.captures(id<StreamId>(stream))) return spoiled(stream);
  finish(id<StreamId>(stream), held);
  return state().failed;
}
// Every question lets it do one piece of work.
EXPORTED CUresult cuStreamQuery(CUstream stream) {
  BEGIN_CALL(asked_in_context);
  if (!has(stream)) return CUDA_ERROR_INVALID_HANDLE;
  REFUSE_IN_CAPTURE();
  if (state().streams.captures(id<StreamId>(stream))) return spoiled(stream);
  const bool done = state().streams.step(id<StreamId>(stream));
  if (state().failed != CUDA_SUCCESS) return state().failed;
  return done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
EXPORTED CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  BEGIN_CALL(asked_in_context);
  if (!has(stream) || !has(event)) return CUDA_ERROR_INVALID_HANDLE;
  const bool captures = state().streams.captures(id<StreamId>(stream));
  if (captures && state().streams.captured(id<EventId>(event))) return CUDA_SUCCESS;
  if (captures) return spoiled(stream, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  if (state().streams.captured(id<EventId>(event))) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  state().streams.wait(id<StreamId>(stream), id<EventId>(event));
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuEventCreate(CUevent* event, unsigned flags) {
  BEGIN_CALL(asked_in_context);
  const bool timing = (flags & CU_EVENT_DISABLE_TIMING) == 0;
  *event = reinterpret_cast<CUevent>(state().streams.create_event(timing));
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuEventDestroy(CUevent event) {
  BEGIN_CALL(asked_in_context);
  return state().streams.destroy_event(id<EventId>(event)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
EXPORTED CUresult cuEventRecord(CUevent event, CUstream stream) {
  BEGIN_CALL(asked_in_context);
  if (!has(stream) || !has(event)) return CUDA_ERROR_INVALID_HANDLE;
  state().streams.record(id<EventId>(event), id<StreamId>(stream));
  return CUDA_SUCCESS;
}
EXPORTED CUresult cuEventQuery(CUevent event) {
  BEGIN_CALL(asked_in_context);
  if (!has(event)) return CUDA_ERROR_INVALID_HANDLE;
  REFUSE_IN_CAPTURE();
  if (state().streams.captured(id<EventId>(event))) return CUDA_ERROR_CAPTURED_EVENT;
  const bool reached = state().streams.step_to(id<EventId>(event));
  if (state().failed != CUDA_SUCCESS) return state().failed;
  return reached ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
// In pieces of work, as if each took a microsecond.
EXPORTED CUresult cuEventElapsedTime(float* milliseconds, CUevent from, CUevent to) {
  BEGIN_CALL(asked_in_context);
  const Streams& streams = state().streams;
  for (const CUevent event : {from, to}) {
    if (!has(event) || !streams.recorded(id<EventId>(event)) || !streams.timing(id<EventId>(event)))
      return CUDA_ERROR_INVALID_HANDLE;
  }
  if (!streams.reached(id<EventId>(from)) || !streams.reached(id<EventId>(to))) return CUDA_ERROR_NOT_READY;
  *milliseconds = (static_cast<float>(streams.time(id<EventId>(to))) -
                   static_cast<float>(streams.time(id<EventId>(from)))) /
                  1000;
  return CUDA_SUCCESS;
}
