(* A second try breaks the theorem of cuts: a counterexample, computed.

   Six people 0 .. 5 have the values 0, 0, 1, 1, 2, 2. Rings are pairs of different values, drawn uniformly, so that l = 2: the other world exchanges the
   values of each pair. A cut passes if both sides are diverse in both worlds. *)

From mathcomp Require Import all_ssreflect.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Definition people := iota 0 6.

Fixpoint words k := if k is k'.+1 then flatten [seq [seq v :: w | w <- words k'] | v <- iota 0 3] else [:: [::]].

(* All ways to give out the values, 90 of them. *)
Definition tables := [seq t <- words 6 | perm_eq t [:: 0; 0; 1; 1; 2; 2]].

Definition value (t : seq nat) x := nth 0 t x.

Fixpoint pairings k (left : seq nat) : seq (seq (nat * nat)) :=
  match k, left with
  | k'.+1, x :: rest => flatten [seq [seq (x, y) :: m | m <- pairings k' (rem y rest)] | y <- rest]
  | _, _ => [:: [::]]
  end.

Definition different t (m : seq (nat * nat)) := all (fun p => value t p.1 != value t p.2) m.

(* The draws of rings: the same number for every table. *)
Definition rings t := [seq m <- pairings 6 people | different t m].

Definition partner (m : seq (nat * nat)) x :=
  foldr (fun p found => if p.1 == x then p.2 else if p.2 == x then p.1 else found) x m.

Definition other_world t m := [seq value t (partner m x) | x <- people].

Definition diverse t side := all (fun v => 2 * count (fun x => value t x == v) side <= size side) (iota 0 3).

Definition passes t m side :=
  let rest := [seq x <- people | x \notin side] in
  [&& diverse t side, diverse t rest, diverse (other_world t m) side & diverse (other_world t m) rest].

Definition first_side := [:: 0; 1].
Definition second_side := [:: 0; 2].

(* The number of draws of a table after which one try fails, and the rings m are shown. *)
Definition after_one t m := count (fun m1 => ~~ passes t m1 first_side && (m1 == m)) (rings t).

(* The number of pairs of draws after which both tries fail, and the rings m of the second are shown. *)
Definition after_two t m :=
  count (fun m1 => ~~ passes t m1 first_side) (rings t) * count (fun m2 => ~~ passes t m2 second_side && (m2 == m)) (rings t).

Theorem draws_alike : all (fun t => size (rings t) == 8) tables.
Proof. by vm_compute. Qed.

(* One try: each of the two worlds explains what is shown equally well. *)
Theorem one_try : all (fun t => all (fun m => after_one t m == after_one (other_world t m) m) (rings t)) tables.
Proof. by vm_compute. Qed.

Definition shown := [:: (0, 3); (1, 4); (2, 5)].
Definition true_world := [:: 1; 1; 0; 2; 0; 2].

(* Two tries: after 8 of 64 draws of the one world and 2 of 64 of the other. So the reader gives person 0 the value 1 with probability 4/5, not 1/2. *)
Theorem second_try :
  [/\ other_world true_world shown = [:: 2; 0; 2; 1; 1; 0], true_world \in tables, other_world true_world shown \in tables,
      after_two true_world shown = 8 & after_two (other_world true_world shown) shown = 2].
Proof. by vm_compute. Qed.
