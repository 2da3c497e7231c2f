// RUN: genrec-opt %s --genrec-expand-updates --split-input-file | FileCheck %s

// A domain that a pass declares has the first name that is free: what ends in another number, or one written otherwise, is no
// such name.

!ids = tensor<?xi64, #genrec.rows<@user>>
!x = tensor<?x4xf32, #genrec.rows<@user>>

// CHECK-LABEL: genrec.model @free
// CHECK: genrec.domain @touched_item kind step
genrec.model @free {
  genrec.domain @user
  genrec.domain @touched_item_1 parent @user kind derived
  genrec.domain @touched_item_02 parent @user kind derived
  genrec.table @item dim 4 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.program @train mode train {
    %user = genrec.batch : !genrec.domain<@user>
    %id = genrec.feature %user "id" : (!genrec.domain<@user>) -> !ids
    %x = genrec.feature %user "x" : (!genrec.domain<@user>) -> !x
    genrec.update_table @item ids(%id) by(%x) : (!ids, !x) -> ()
  }
}

// -----

!ids = tensor<?xi64, #genrec.rows<@user>>
!x = tensor<?x4xf32, #genrec.rows<@user>>

// CHECK-LABEL: genrec.model @taken
// CHECK: genrec.domain @touched_item_3 kind step
genrec.model @taken {
  genrec.domain @user
  genrec.domain @touched_item parent @user kind derived
  genrec.domain @touched_item_2 parent @user kind derived
  genrec.table @item dim 4 {init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {lr = 0.1}>}
  genrec.program @train mode train {
    %user = genrec.batch : !genrec.domain<@user>
    %id = genrec.feature %user "id" : (!genrec.domain<@user>) -> !ids
    %x = genrec.feature %user "x" : (!genrec.domain<@user>) -> !x
    genrec.update_table @item ids(%id) by(%x) : (!ids, !x) -> ()
  }
}
