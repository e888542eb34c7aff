#include "runtime/tensor/cpu/dnnl_primitive.h"

#include <sys/mman.h>

#include <exception>
#include <new>

#include "base/check.h"
#include "base/status.h"

namespace paceline::tensor::cpu {

namespace {

constexpr std::size_t kCodeBytes = 4 << 20;  // a primitive's functions, of 256 KiB and less each

absl::Status room_for_code() {
  void* room = ::mmap(nullptr, kCodeBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED)
    return absl::ResourceExhaustedError(
        "no address space is left for the code of what is computed; raise its limit (ulimit -v)");
  ::munmap(room, kCodeBytes);
  return absl::OkStatus();
}

}  // namespace

Layout plain_layout(const std::vector<std::int64_t>& dims, dnnl::memory::data_type type) {
  std::vector<std::int64_t> strides(dims.size());
  std::int64_t stride = 1;
  for (std::size_t i = dims.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= dims[i];
  }
  return Layout(dims, type, strides);
}

bool is_plain(const Layout& layout) {
  return layout == plain_layout(layout.dims(), layout.data_type());
}

bool is_padded(const Layout& layout) {
  std::size_t elements = 1;
  for (const auto d : layout.dims()) elements *= static_cast<std::size_t>(d);
  return layout.get_size() != elements * dnnl::memory::data_type_size(layout.data_type());
}

Layout with_type(const Layout& layout, dnnl::memory::data_type type) {
  Layout result = layout;
  result.data.data_type = dnnl::memory::convert_to_c(type);
  return result;
}

dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

absl::Status dnnl_guard(const std::function<void()>& make) {
  PL_RETURN_IF_ERROR(room_for_code());
  try {
    make();
    return absl::OkStatus();
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_out_of_memory)
      return absl::ResourceExhaustedError(str_cat("oneDNN: ", error.message));
    return absl::UnimplementedError(str_cat("oneDNN: ", error.message));
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of memory");
  }
}

std::size_t DnnlPrimitive::argument(int argument, const Layout& layout) {
  memories_.emplace_back(layout, context_->engine, nullptr);
  arguments_.push_back({argument, memories_.back().get()});
  return arguments_.size() - 1;
}

void DnnlPrimitive::bind(std::size_t number, void* address) {
  memories_[number].set_data_handle(address);
}

void DnnlPrimitive::run() const {
  const auto status = dnnl_primitive_execute(primitive_.get(), context_->stream.get(),
                                             static_cast<int>(arguments_.size()), arguments_.data());
  PL_CHECK(status == dnnl_success, "a primitive that was made runs");
}

LayoutChange::LayoutChange(const DnnlContext& context, const Layout& from, const Layout& to,
                           Scratch& scratch) {
  const dnnl::reorder::primitive_desc description(context.engine, from, context.engine, to,
                                                  user_scratchpad());
  primitive_ = DnnlPrimitive(context, dnnl::reorder(description));
  primitive_.argument(DNNL_ARG_FROM, from);
  primitive_.argument(DNNL_ARG_TO, to);
  primitive_.argument(DNNL_ARG_SCRATCHPAD, description.scratchpad_desc());
  scratch_offset_ = scratch.add(description.scratchpad_desc().get_size());
}

void LayoutChange::bind(const void* from, void* to, void* scratch) {
  primitive_.bind(0, const_cast<void*>(from));
  primitive_.bind(1, to);
  primitive_.bind(2, static_cast<std::byte*>(scratch) + scratch_offset_);
}

}  // namespace paceline::tensor::cpu
