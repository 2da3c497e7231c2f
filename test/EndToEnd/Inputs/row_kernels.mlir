// Row kernels of every kind, for both targets: test_cuda_kernels.py. Domains: 0 user, 1 history, 2 items.
!user = !genrec.domain<@user>
!history = !genrec.domain<@history>
!items = !genrec.domain<@items>
!u = tensor<?xf32, #genrec.rows<@user>>
!u50 = tensor<?x50xf32, #genrec.rows<@user>>
!h = tensor<?xf32, #genrec.rows<@history>>
!h2 = tensor<?x2xf32, #genrec.rows<@history>>
!h8 = tensor<?x8xf32, #genrec.rows<@history>>
!h50 = tensor<?x50xf32, #genrec.rows<@history>>
!hi = tensor<?xi64, #genrec.rows<@history>>
!hr = tensor<?x!genrec.row<50>, #genrec.rows<@history>>
!m = tensor<?xf32, #genrec.rows<@items>>
!m50 = tensor<?x50xf32, #genrec.rows<@items>>
!h640 = tensor<?x640xf32, #genrec.rows<@history>>
!m640 = tensor<?x640xf32, #genrec.rows<@items>>
!ir = tensor<?x!genrec.row<50>, #genrec.rows<@items>>
!s = tensor<f32>
!s2 = tensor<2xf32>
!s32 = tensor<3x2xf32>
!s50 = tensor<50xf32>
#one = #genrec.init<constant, 1.0>
#sgd = #genrec.optimizer<sgd, {lr = 1.0}>
#aligned = #genrec<operand_role aligned>

genrec.model @kernels {
  genrec.domain @user
  genrec.domain @history parent @user {column = "history"}
  genrec.domain @items kind catalogue
  genrec.table @item dim 50 {init = #genrec.init<normal, 0.1>, optimizer = #sgd}
  genrec.program @train mode train {
    %user, %history = genrec.batch : !user, !history
    %items = genrec.catalogue : !items
    %scale = genrec.feature %user "scale" : (!user) -> !u
    %id = genrec.feature %history "history.id" : (!history) -> !hi
    %x = genrec.feature %history "history.x" : (!history) -> !h
    %v = genrec.feature %items "v" : (!items) -> !m
    %half = genrec.constant dense<[0.5, 2.0]> : !s2

    // Operands aligned, ancestor, shared, indirect; results aligned, pooled (two kinds), reduced, scattered (rows of a
    // parameter and of a domain).
    %aligned, %summed, %last, %total, %spread, %seen = genrec.row_kernel %history(%x, %scale, %half, %id, %v)
        attributes {name = "roles",
                    operand_roles = [#aligned, #genrec<operand_role ancestor>, #genrec<operand_role shared>, #aligned,
                                     #genrec<operand_role source>],
                    result_roles = [#genrec<result_role aligned>, #genrec<result_role pooled>, #genrec<result_role pooled>,
                                    #genrec<result_role reduced>, #genrec<result_role scattered>, #genrec<result_role scattered>],
                    pool_kinds = [#genrec<pool_kind mean>, #genrec<pool_kind max>]}
        : (!history, !h, !u, !s2, !hi, !m) -> (!h2, !u, !u, !s2, !s32, !m) {
    ^bb0(%one: f32, %above: f32, %factor: vector<2xf32>, %index: i64, %source: !m,
         %sum: !genrec.accumulator<!s2>, %rows: !genrec.accumulator<!s32>, %counts: !genrec.accumulator<!m>):
      %pair = vector.broadcast %one : f32 to vector<2xf32>
      %scaled = arith.mulf %pair, %factor : vector<2xf32>
      genrec.accumulate %scaled into %sum : !genrec.accumulator<!s2>, vector<2xf32>
      %three = arith.constant 3 : i64
      %line = arith.remsi %index, %three : i64
      genrec.accumulate %scaled into %rows at %line : !genrec.accumulator<!s32>, vector<2xf32>, i64
      genrec.accumulate %one into %counts at %index {clamp} : !genrec.accumulator<!m>, f32, i64
      %found = genrec.row_gather %source[%index] : (!m, i64) -> f32
      %both = arith.addf %found, %above : f32
      genrec.row_yield %scaled, %both, %one : vector<2xf32>, f32, f32
    }

    // A looked-up row; two reductions, one after the other; dropout and random numbers; a pooled row.
    %rows = genrec.table_rows %id in @item : (!hi) -> !hr
    %normed, %mean = genrec.row_kernel %history(%rows)
        attributes {name = "norm", operand_roles = [#aligned],
                    result_roles = [#genrec<result_role aligned>, #genrec<result_role pooled>],
                    pool_kinds = [#genrec<pool_kind sum>]}
        : (!history, !hr) -> (!h50, !u50) {
    ^bb0(%row: !genrec.row<50>):
      %value = genrec.row_load %row : (!genrec.row<50>) -> vector<50xf32>
      %sum = vector.reduction <add>, %value : vector<50xf32> into f32
      %fiftieth = arith.constant 0.02 : f32
      %middle = arith.mulf %sum, %fiftieth : f32
      %means = vector.broadcast %middle : f32 to vector<50xf32>
      %off = arith.subf %value, %means : vector<50xf32>
      %square = arith.mulf %off, %off : vector<50xf32>
      %squares = vector.reduction <add>, %square : vector<50xf32> into f32
      %inverse = math.rsqrt %squares : f32
      %scales = vector.broadcast %inverse : f32 to vector<50xf32>
      %normal = arith.mulf %off, %scales : vector<50xf32>
      %keep = genrec.keep_mask {rate = 0.25 : f64, stream = 512 : i64} : vector<50xi1>
      %zeros = arith.constant dense<0.0> : vector<50xf32>
      %dropped = arith.select %keep, %normal, %zeros : vector<50xi1>, vector<50xf32>
      %drawn = genrec.row_uniform {stream = 768 : i64} : vector<50xf32>
      %angle = arith.addf %dropped, %drawn : vector<50xf32>
      %wave = math.sin %angle : vector<50xf32>
      %turned = math.cos %wave : vector<50xf32>
      %curved = math.exp %turned : vector<50xf32>
      genrec.row_yield %dropped, %curved : vector<50xf32>, vector<50xf32>
    }

    // The norm of a row that one thread has, and that lies in memory.
    %eight = genrec.row_kernel %history(%x)
        attributes {name = "eight", operand_roles = [#aligned], result_roles = [#genrec<result_role aligned>]}
        : (!history, !h) -> !h8 {
    ^bb0(%one: f32):
      %same = vector.broadcast %one : f32 to vector<8xf32>
      %steps = arith.constant dense<[-0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0]> : vector<8xf32>
      %row = arith.mulf %same, %steps : vector<8xf32>
      genrec.row_yield %row : vector<8xf32>
    }
    %narrow = genrec.row_kernel %history(%eight)
        attributes {name = "narrow", operand_roles = [#aligned], result_roles = [#genrec<result_role aligned>]}
        : (!history, !h8) -> !h8 {
    ^bb0(%value: vector<8xf32>):
      %sum = vector.reduction <add>, %value : vector<8xf32> into f32
      %eighth = arith.constant 0.125 : f32
      %middle = arith.mulf %sum, %eighth : f32
      %means = vector.broadcast %middle : f32 to vector<8xf32>
      %off = arith.subf %value, %means : vector<8xf32>
      %square = arith.mulf %off, %off : vector<8xf32>
      %squares = vector.reduction <add>, %square : vector<8xf32> into f32
      %inverse = math.rsqrt %squares : f32
      %scales = vector.broadcast %inverse : f32 to vector<8xf32>
      %normal = arith.mulf %off, %scales : vector<8xf32>
      genrec.row_yield %normal : vector<8xf32>
    }

    // Vectors of items, from a table of constants.
    %vectors = genrec.row_kernel %items(%v)
        attributes {name = "vectors", operand_roles = [#aligned], result_roles = [#genrec<result_role aligned>]}
        : (!items, !m) -> !m50 {
    ^bb0(%one: f32):
      %same = vector.broadcast %one : f32 to vector<50xf32>
      %steps = arith.constant dense<[-0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, -0.75]> : vector<50xf32>
      %row = arith.mulf %same, %steps : vector<50xf32>
      genrec.row_yield %row : vector<50xf32>
    }
    // Sampled rows: draws, dots, a softmax with its maximum, their mixture and a rank-one gradient.
    %mixed, %gradient = genrec.row_kernel %history(%normed, %vectors)
        attributes {name = "sampled", operand_roles = [#aligned, #genrec<operand_role source>],
                    result_roles = [#genrec<result_role aligned>, #genrec<result_role scattered>]}
        : (!history, !h50, !m50) -> (!h50, !m50) {
    ^bb0(%query: vector<50xf32>, %source: !m50, %to: !genrec.accumulator<!m50>):
      %drawn = genrec.random_index %source {stream = 1024 : i64} : (!m50) -> vector<9xi64>
      %dots = genrec.gather_dot %source[%drawn], %query : (!m50, vector<9xi64>, vector<50xf32>) -> vector<9xf32>
      %most = vector.reduction <maximumf>, %dots : vector<9xf32> into f32
      %mosts = vector.broadcast %most : f32 to vector<9xf32>
      %below = arith.subf %dots, %mosts : vector<9xf32>
      %weights = math.exp %below : vector<9xf32>
      %sum = vector.reduction <add>, %weights : vector<9xf32> into f32
      %sums = vector.broadcast %sum : f32 to vector<9xf32>
      %shares = arith.divf %weights, %sums : vector<9xf32>
      %mix = genrec.gather_sum %source[%drawn], %shares : (!m50, vector<9xi64>, vector<9xf32>) -> vector<50xf32>
      genrec.accumulate %query into %to at %drawn times %shares : !genrec.accumulator<!m50>, vector<50xf32>, vector<9xi64>, vector<9xf32>
      genrec.row_yield %mix : vector<50xf32>
    }
    // The same of rows that have a warp on a device, where each is read once: one is left out, and rows without an id.
    %wide = genrec.row_kernel %items(%v)
        attributes {name = "wide", operand_roles = [#aligned], result_roles = [#genrec<result_role aligned>]}
        : (!items, !m) -> !m640 {
    ^bb0(%one: f32):
      %row = vector.broadcast %one : f32 to vector<640xf32>
      genrec.row_yield %row : vector<640xf32>
    }
    %softmax = genrec.row_kernel %history(%x, %id, %wide)
        attributes {name = "softmax", operand_roles = [#aligned, #aligned, #genrec<operand_role source>],
                    result_roles = [#genrec<result_role aligned>]}
        : (!history, !h, !hi, !m640) -> !h640 {
    ^bb0(%f: f32, %hit: i64, %source: !m640):
      %by = arith.constant dense<0.01> : vector<9xf32>
      %masked = arith.constant dense<-1.0e30> : vector<9xf32>
      %zeros = arith.constant dense<0.0> : vector<9xf32>
      %least = arith.constant 0.5 : f32
      %zero = arith.constant 0 : i64
      %query = vector.broadcast %f : f32 to vector<640xf32>
      %drawn = genrec.random_index %source {stream = 1536 : i64} : (!m640) -> vector<9xi64>
      %dots = genrec.gather_dot %source[%drawn], %query : (!m640, vector<9xi64>, vector<640xf32>) -> vector<9xf32>
      %scaled = arith.mulf %dots, %by : vector<9xf32>
      %hits = vector.broadcast %hit : i64 to vector<9xi64>
      %is_hit = arith.cmpi eq, %drawn, %hits : vector<9xi64>
      %logits = arith.select %is_hit, %masked, %scaled : vector<9xi1>, vector<9xf32>
      %most = vector.reduction <maximumf>, %logits : vector<9xf32> into f32
      %largest = arith.maximumf %most, %least : f32
      %largests = vector.broadcast %largest : f32 to vector<9xf32>
      %below = arith.subf %logits, %largests : vector<9xf32>
      %exps = math.exp %below : vector<9xf32>
      %sum = vector.reduction <add>, %exps : vector<9xf32> into f32
      %more = arith.addf %sum, %least : f32
      %share = arith.divf %least, %more : f32
      %shares = vector.broadcast %share : f32 to vector<9xf32>
      %products = arith.mulf %exps, %shares : vector<9xf32>
      %is_valid = arith.cmpi sge, %hit, %zero : i64
      %all_valid = vector.broadcast %is_valid : i1 to vector<9xi1>
      %coefficients = arith.select %all_valid, %products, %zeros : vector<9xi1>, vector<9xf32>
      %mix = genrec.gather_sum %source[%drawn], %coefficients : (!m640, vector<9xi64>, vector<9xf32>) -> vector<640xf32>
      genrec.row_yield %mix : vector<640xf32>
    }
    // More reductions than lanes of a device have registers for their rows at once; their order is that of the sum.
    %many, %last_of_many = genrec.row_kernel %history(%normed)
        attributes {name = "many", operand_roles = [#aligned], result_roles = [#genrec<result_role reduced>, #genrec<result_role aligned>]}
        : (!history, !h50) -> (!s, !h) {
    ^bb0(%row: vector<50xf32>, %all: !genrec.accumulator<!s>):
      %by0 = arith.constant dense<0.75> : vector<50xf32>
      %product0 = arith.mulf %row, %by0 : vector<50xf32>
      %total0 = vector.reduction <add>, %product0 : vector<50xf32> into f32
      genrec.accumulate %total0 into %all : !genrec.accumulator<!s>, f32
      %by1 = arith.constant dense<1.75> : vector<50xf32>
      %product1 = arith.mulf %row, %by1 : vector<50xf32>
      %total1 = vector.reduction <add>, %product1 : vector<50xf32> into f32
      genrec.accumulate %total1 into %all : !genrec.accumulator<!s>, f32
      %by2 = arith.constant dense<2.75> : vector<50xf32>
      %product2 = arith.mulf %row, %by2 : vector<50xf32>
      %total2 = vector.reduction <add>, %product2 : vector<50xf32> into f32
      genrec.accumulate %total2 into %all : !genrec.accumulator<!s>, f32
      %by3 = arith.constant dense<3.75> : vector<50xf32>
      %product3 = arith.mulf %row, %by3 : vector<50xf32>
      %total3 = vector.reduction <add>, %product3 : vector<50xf32> into f32
      genrec.accumulate %total3 into %all : !genrec.accumulator<!s>, f32
      %by4 = arith.constant dense<4.75> : vector<50xf32>
      %product4 = arith.mulf %row, %by4 : vector<50xf32>
      %total4 = vector.reduction <add>, %product4 : vector<50xf32> into f32
      genrec.accumulate %total4 into %all : !genrec.accumulator<!s>, f32
      %by5 = arith.constant dense<5.75> : vector<50xf32>
      %product5 = arith.mulf %row, %by5 : vector<50xf32>
      %total5 = vector.reduction <add>, %product5 : vector<50xf32> into f32
      genrec.accumulate %total5 into %all : !genrec.accumulator<!s>, f32
      %by6 = arith.constant dense<6.75> : vector<50xf32>
      %product6 = arith.mulf %row, %by6 : vector<50xf32>
      %total6 = vector.reduction <add>, %product6 : vector<50xf32> into f32
      genrec.accumulate %total6 into %all : !genrec.accumulator<!s>, f32
      %by7 = arith.constant dense<7.75> : vector<50xf32>
      %product7 = arith.mulf %row, %by7 : vector<50xf32>
      %total7 = vector.reduction <add>, %product7 : vector<50xf32> into f32
      genrec.accumulate %total7 into %all : !genrec.accumulator<!s>, f32
      %by8 = arith.constant dense<8.75> : vector<50xf32>
      %product8 = arith.mulf %row, %by8 : vector<50xf32>
      %total8 = vector.reduction <add>, %product8 : vector<50xf32> into f32
      genrec.accumulate %total8 into %all : !genrec.accumulator<!s>, f32
      %by9 = arith.constant dense<9.75> : vector<50xf32>
      %product9 = arith.mulf %row, %by9 : vector<50xf32>
      %total9 = vector.reduction <add>, %product9 : vector<50xf32> into f32
      genrec.accumulate %total9 into %all : !genrec.accumulator<!s>, f32
      %by10 = arith.constant dense<10.75> : vector<50xf32>
      %product10 = arith.mulf %row, %by10 : vector<50xf32>
      %total10 = vector.reduction <add>, %product10 : vector<50xf32> into f32
      genrec.accumulate %total10 into %all : !genrec.accumulator<!s>, f32
      %by11 = arith.constant dense<11.75> : vector<50xf32>
      %product11 = arith.mulf %row, %by11 : vector<50xf32>
      %total11 = vector.reduction <add>, %product11 : vector<50xf32> into f32
      genrec.accumulate %total11 into %all : !genrec.accumulator<!s>, f32
      genrec.row_yield %total11 : f32
    }
    %one = genrec.constant dense<1.0> : !s
    genrec.report_loss "none" %one, %one : !s, !s
  }
}
