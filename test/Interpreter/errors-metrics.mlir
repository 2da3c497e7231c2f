// What no metric can measure ends in a message at the op.
// RUN: not genrec-run %s --split-input-file --mode=evaluate --batch=%S/Inputs/one.json 2>&1 | FileCheck %s

!user = !genrec.domain<@user>
!u = tensor<?xf32, #genrec.rows<@user>>
genrec.model @measured {
  genrec.domain @user
  genrec.program @evaluate mode evaluate {
    %user = genrec.batch : !user
    %x = genrec.feature %user "x" : (!user) -> !u
    %label = genrec.feature %user "label" : (!user) -> !u
    genrec.metric auc "fine" %x label %label : !u, !u
    // CHECK: error: 'metric' has the label 2 in row 1, which is neither 0 nor 1
    genrec.metric auc "auc" %x label %x : !u, !u
  }
}

// -----

!user = !genrec.domain<@user>
!u = tensor<?xf32, #genrec.rows<@user>>
genrec.model @weighed {
  genrec.domain @user
  genrec.program @evaluate mode evaluate {
    %user = genrec.batch : !user
    %x = genrec.feature %user "x" : (!user) -> !u
    %negative = genrec.neg %x : !u
    // CHECK: error: 'metric' has a weight in row 1 that is negative or not finite
    genrec.metric mae "mae" %x label %x weight %negative : !u, !u, !u
  }
}

// -----

!user = !genrec.domain<@user>
!list = !genrec.domain<@list>
!l = tensor<?xf32, #genrec.rows<@list>>
!li = tensor<?xi64, #genrec.rows<@list>>
genrec.model @listed {
  genrec.domain @user
  genrec.domain @list parent @user kind derived
  genrec.program @evaluate mode evaluate {
    %user = genrec.batch : !user
    %list = genrec.concat_domains %user, %user : (!user, !user) -> !list
    %x = genrec.feature %user "x" : (!user) -> tensor<?xf32, #genrec.rows<@user>>
    %y = genrec.concat_rows %x, %x into %list : (tensor<?xf32, #genrec.rows<@user>>, tensor<?xf32, #genrec.rows<@user>>, !list) -> !l
    // CHECK: error: 'rank_in_list' has a NaN score, or a label that is neither 0 nor 1, in row 2
    %place = genrec.rank_in_list %y, %y : (!l, !l) -> !li
    genrec.metric ranking "places" %place {at = array<i64: 1>, per_list} : !li
  }
}
