// A call of what the CPU alone has.
emitc.func @prefetch(%row: !emitc.ptr<f32>) {
  emitc.call_opaque "kernels::prefetchRow"(%row) : (!emitc.ptr<f32>) -> ()
  emitc.return
}
